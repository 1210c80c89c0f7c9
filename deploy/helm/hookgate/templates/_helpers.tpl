{{/*
hookgate.objects renders a file of deploy/ as an installation in the release's namespace: file is its name below files/,
labelled whether its objects get the provider's label, without a list of objects to leave out, as KIND/NAME. The
links below files/ are what keeps the chart equal to the manifests of kustomize.
*/}}
{{- define "hookgate.objects" -}}
{{- $cluster := list "ClusterRole" "ClusterRoleBinding" "CustomResourceDefinition" "ExtensionConfig" "MutatingWebhookConfiguration"
  "ValidatingWebhookConfiguration" "ValidatingAdmissionPolicy" "ValidatingAdmissionPolicyBinding" }}
{{- $text := .root.Files.Get (printf "files/%s" .file) | replace "hookgate-system" .root.Release.Namespace }}
{{- if not $text }}{{ fail (printf "files/%s is missing" .file) }}{{ end }}
{{- range $document := regexSplit "(?m)^---$" (trimPrefix "---" $text) -1 }}
{{- $object := fromYaml $document }}
{{- if not $object.kind }}{{ fail (printf "files/%s has a document without a kind" $.file) }}{{ end }}
{{- $metadata := $object.metadata }}
{{- $self := eq $.root.Values.certificates "self" }}
{{- if $self }}
{{- $annotations := omit ($metadata.annotations | default dict) "cert-manager.io/inject-ca-from" }}
{{- if $annotations }}{{ $_ := set $metadata "annotations" $annotations }}{{ else }}{{ $_ := unset $metadata "annotations" }}{{ end }}
{{- end }}
{{- if not (or (has (printf "%s/%s" $object.kind $metadata.name) ($.without | default list)) (and $self (eq $object.kind "Certificate"))) }}
{{- if $.labelled }}
{{- $_ := set $metadata "labels" (merge (dict "cluster.x-k8s.io/provider" "runtime-extension-hookgate") ($metadata.labels | default dict)) }}
{{- end }}
{{- if not (has $object.kind $cluster) }}{{ $_ := set $metadata "namespace" $.root.Release.Namespace }}{{ end }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end }}

{{/* hookgate.hub is not empty for an installation that watches and writes ExtensionConfigs. */}}
{{- define "hookgate.hub" -}}
{{- if hasPrefix "hub-" .Values.installation }}hub{{ end }}
{{- end }}

{{/* hookgate.group is the API group of the ExtensionConfigs that a hub watches. */}}
{{- define "hookgate.group" -}}
{{- if eq .Values.installation "hub-alone" }}runtime.cluster.x-k8s.io{{ else }}runtime.hookgate.dev{{ end }}
{{- end }}

{{/* hookgate.selector is the labels of the gateway's Pods. */}}
{{- define "hookgate.selector" -}}
app.kubernetes.io/name: hookgate
cluster.x-k8s.io/provider: runtime-extension-hookgate
{{- end }}

{{/* hookgate.metadata is the metadata of an object that is named like the gateway. */}}
{{- define "hookgate.metadata" -}}
name: hookgate
namespace: {{ .Release.Namespace }}
labels:
  cluster.x-k8s.io/provider: runtime-extension-hookgate
{{- end }}

{{/* hookgate.image is the image, by its digest if there is one. */}}
{{- define "hookgate.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/*
hookgate.goMemoryLimit is nine tenths of the memory limit, as Go's runtime reads it. It is empty without a limit, for one
that is no quantity, and where env has GOMEMLIMIT itself.
*/}}
{{- define "hookgate.goMemoryLimit" -}}
{{- $limit := dig "limits" "memory" "" (.Values.resources | default dict) }}
{{- if not (kindIs "string" $limit) }}{{ $limit = printf "%.0f" (float64 $limit) }}{{ end }}
{{- $factors := dict "m" 1e-3 "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18
  "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 "Ei" 1152921504606846976 }}
{{- $own := false }}
{{- range .Values.env }}{{ if eq .name "GOMEMLIMIT" }}{{ $own = true }}{{ end }}{{ end }}
{{- if and (not $own) (regexMatch "^([0-9]{1,19}([.][0-9]{0,9})?|[.][0-9]{1,9})(m|k|M|G|T|P|E|[KMGTPE]i|[eE][0-9]{1,2})?$" $limit) }}
{{- $suffix := regexFind "[A-Za-z]+$" $limit }}
{{- $mebibytes := divf (mulf (trimSuffix $suffix $limit) (get $factors $suffix) 0.9) 1048576 | floor }}
{{- /* Go's runtime ends at once if the limit is no int64, and the collector never rests if it is nothing. */}}
{{- if and (ge $mebibytes 1.0) (lt $mebibytes 8796093022208.0) }}{{ printf "%.0fMiB" $mebibytes }}{{ end }}
{{- end }}
{{- end }}

{{/* hookgate.checks fails for values that are valid one by one and contradict each other. */}}
{{- define "hookgate.checks" -}}
{{- $hub := include "hookgate.hub" . }}
{{- with .Values }}
{{- if and .maxReplicas (or (lt (int .replicas) 1) (le (int .maxReplicas) (int .replicas))) }}
{{- fail (printf "replicas is %d and maxReplicas is %d: replicas must be at least 1 and less than maxReplicas; maxReplicas 0 means no autoscaler" (int .replicas) (int .maxReplicas)) }}
{{- end }}
{{- if and .oneNamespace (not $hub) }}
{{- fail (printf "oneNamespace is for the installations hub-beside-core and hub-alone: %s reads no Secrets" .installation) }}
{{- end }}
{{- if and .hookJobs (not $hub) }}
{{- fail (printf "hookJobs is for the installations hub-beside-core and hub-alone: %s writes nothing to the cluster" .installation) }}
{{- end }}
{{- if and .machines (not $hub) }}
{{- fail (printf "machines is for the installations hub-beside-core and hub-alone: %s writes nothing to the cluster" .installation) }}
{{- end }}
{{- if and .clusters (not $hub) }}
{{- fail (printf "clusters is for the installations hub-beside-core and hub-alone: %s writes nothing to the cluster" .installation) }}
{{- end }}
{{- if and .monitoring (not $hub) }}
{{- fail (printf "monitoring is for the installations hub-beside-core and hub-alone, which let Prometheus in by its token: %s does not" .installation) }}
{{- end }}
{{- if and .metrics (ne .installation "directory") }}
{{- fail (printf "metrics is for the installation directory: %s %s" .installation (ternary "has them already" "does not serve them outside of its Pod" (not (empty $hub)))) }}
{{- end }}
{{- if and .extensionConfigs (ne .installation "directory") }}
{{- fail (printf "extensionConfigs is for the installation directory: %s reads them from the cluster" .installation) }}
{{- end }}
{{- range .env }}
{{- if eq .name "POD_NAMESPACE" }}{{ fail "env: POD_NAMESPACE is set by the chart, to the release's namespace" }}{{ end }}
{{- end }}
{{- if and .register (ne .installation "hub-beside-core") }}
{{- fail (printf "register is for the installation hub-beside-core, not %s: for others, docs/deploy.md has the ExtensionConfig to apply where Cluster API runs" .installation) }}
{{- end }}
{{- end }}
{{- end }}
