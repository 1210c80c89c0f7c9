# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

# An extension that holds the creation of a Cluster until the Cluster has a label team. docs/other-languages.md shows how
# to generate the stubs.

require "grpc"
require "grpc/health/checker"
require "json"
require "hookgate/hooks/v1alpha1/discovery_services_pb"
require "hookgate/hooks/v1alpha1/lifecycle_hooks_services_pb"

Hooks = Hookgate::Hooks::V1alpha1

class Discovery < Hooks::DiscoveryService::Service
  def discovery(_request, _call)
    hook = Hooks::GroupVersionHook.new(
      api_version: "hooks.runtime.cluster.x-k8s.io/v1alpha1", hook: "BeforeClusterCreate")
    handler = Hooks::ExtensionHandler.new(
      name: "require-team", request_hook: hook, timeout_seconds: 10,
      failure_policy: :FAILURE_POLICY_FAIL, cluster_api_version: "v1beta2")
    Hooks::DiscoveryResponse.new(status: :RESPONSE_STATUS_SUCCESS, handlers: [handler])
  end
end

class Lifecycle < Hooks::LifecycleHooksService::Service
  def before_cluster_create(request, _call)
    metadata = metadata_of(request.cluster)
    labels = metadata["labels"]
    answer = Hooks::BeforeClusterCreateResponse.new(status: :RESPONSE_STATUS_SUCCESS)
    unless labels.is_a?(Hash) && labels.key?("team")
      answer.retry_after_seconds = 30
      answer.message = "Cluster #{metadata["name"]} waits for the label team"
    end
    answer
  end

  private

  def metadata_of(cluster)
    object = JSON.parse(cluster&.raw.to_s)
    metadata = object["metadata"] if object.is_a?(Hash)
    return metadata if metadata.is_a?(Hash)
    raise GRPC::InvalidArgument, "cluster is no object with metadata"
  rescue JSON::ParserError
    raise GRPC::InvalidArgument, "cluster is no JSON"
  end
end

health = Grpc::Health::Checker.new
health.add_status("", Grpc::Health::V1::HealthCheckResponse::ServingStatus::SERVING)
limit = 20 * 1024 * 1024
server = GRPC::RpcServer.new(server_args: {
  "grpc.max_receive_message_length" => limit, "grpc.max_send_message_length" => limit })
server.add_http2_port(ARGV.fetch(0, "127.0.0.1:9090"), :this_port_is_insecure)
[Discovery, Lifecycle, health].each { |service| server.handle(service) }
server.run_till_terminated_or_interrupted(["TERM", "INT"])
