// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/hookgate/hookgate/test/process"
)

// object is a value of Envoy's configuration, which is JSON here: JSON is YAML, and needs no care with indentation.
type object = map[string]any

// list is a list in Envoy's configuration.
type list = []any

// envoyBuffer is how much Envoy holds of one body. It has to be a whole one for the transcoder, whose default of 1 MiB
// is below the size L.
const envoyBuffer = 20 << 20

// envoyConfig returns the configuration of a plain TLS proxy. With a transcoder, it calls the upstream over gRPC.
func envoyConfig(listen, upstream string, certs certificates, transcoder object) object {
	router := httpFilter("envoy.filters.http.router", object{
		"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router",
	})
	filters, southALPN := list{router}, "http/1.1"
	southProtocol := object{"http_protocol_options": object{}}
	if transcoder != nil {
		filters, southALPN = list{httpFilter("envoy.filters.http.grpc_json_transcoder", transcoder), router}, "h2"
		southProtocol = object{"http2_protocol_options": object{}}
	}
	manager := object{
		"@type":       "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		"stat_prefix": "bench", "http_filters": filters,
		"route_config": object{"virtual_hosts": list{object{
			"name": "extension", "domains": list{"*"},
			"routes": list{object{"match": object{"prefix": "/"}, "route": object{"cluster": "extension", "timeout": "35s"}}},
		}}},
	}
	listener := object{
		"name": "callers", "address": socketAddress(listen), "per_connection_buffer_limit_bytes": envoyBufferOf(transcoder),
		"filter_chains": list{object{
			"transport_socket": transportSocket("DownstreamTlsContext", object{"common_tls_context": object{
				"alpn_protocols": list{"h2", "http/1.1"},
				"tls_certificates": list{object{
					"certificate_chain": object{"filename": certs.certFile()}, "private_key": object{"filename": certs.keyFile()},
				}},
			}}),
			"filters": list{object{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}},
		}},
	}
	const protocolOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
	unlimited := object{
		"max_connections": maxCallers * 2, "max_pending_requests": maxCallers * 2, "max_requests": maxCallers * 2,
	}
	cluster := object{
		"name": "extension", "circuit_breakers": object{"thresholds": list{unlimited}},
		"load_assignment": object{"cluster_name": "extension", "endpoints": list{object{
			"lb_endpoints": list{object{"endpoint": object{"address": socketAddress(upstream)}}},
		}}},
		"typed_extension_protocol_options": object{protocolOptions: object{
			"@type": "type.googleapis.com/" + protocolOptions, "explicit_http_config": southProtocol,
		}},
		"transport_socket": transportSocket("UpstreamTlsContext", object{
			"sni": "localhost",
			"common_tls_context": object{
				"alpn_protocols": list{southALPN},
				"validation_context": object{
					"trusted_ca":                    object{"filename": certs.caFile},
					"match_typed_subject_alt_names": list{object{"san_type": "DNS", "matcher": object{"exact": "localhost"}}},
				},
			},
		}),
	}
	return object{"static_resources": object{"listeners": list{listener}, "clusters": list{cluster}}}
}

// envoyBufferOf is Envoy's default without a transcoder, which has to see whole bodies.
func envoyBufferOf(transcoder object) int {
	if transcoder != nil {
		return envoyBuffer
	}
	return 1 << 20
}

func httpFilter(name string, config object) object {
	return object{"name": name, "typed_config": config}
}

func socketAddress(address string) object {
	host, port, _ := net.SplitHostPort(address) // from a listener
	number, _ := strconv.Atoi(port)
	return object{"socket_address": object{"address": host, "port_value": number}}
}

func transportSocket(kind string, config object) object {
	config["@type"] = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3." + kind
	return object{"name": "envoy.transport_sockets.tls", "typed_config": config}
}

// startEnvoy starts Envoy with two workers in front of upstream and returns it and its address.
func startEnvoy(
	ctx context.Context, name, path, dir, upstream string, certs certificates, transcoder object,
) (*process.Process, string, error) {
	listen, err := freeAddress()
	if err != nil {
		return nil, "", err
	}
	config, err := json.MarshalIndent(envoyConfig(listen, upstream, certs, transcoder), "", "  ")
	if err != nil {
		return nil, "", err
	}
	file := filepath.Join(dir, name+".yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return nil, "", fmt.Errorf("write Envoy's configuration: %w", err)
	}
	p, err := process.Start(name, exec.CommandContext(ctx, path, "--config-path", file, "--disable-hot-restart",
		"--concurrency", "2", "--log-level", "warning"))
	return p, listen, err
}
