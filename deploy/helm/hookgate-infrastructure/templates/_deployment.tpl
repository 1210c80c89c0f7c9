{{/* hookgate-infrastructure.set sets the values in the Deployment. It renders nothing. */}}
{{- define "hookgate-infrastructure.set" -}}
{{- $values := .root.Values }}
{{- $spec := .deployment.spec }}
{{- $pod := $spec.template.spec }}
{{- $manager := index $pod.containers 0 }}
{{- $env := list }}
{{- with include "hookgate.goMemoryLimit" .root }}{{ $env = append $env (dict "name" "GOMEMLIMIT" "value" .) }}{{ end }}
{{- range $manager.env }}{{ if ne .name "GOMEMLIMIT" }}{{ $env = prepend $env . }}{{ end }}{{ end }}
{{- range $values.env }}
{{- if eq .name "POD_NAMESPACE" }}{{ fail "env: POD_NAMESPACE is set by the chart, to the release's namespace" }}{{ end }}
{{- $env = append $env . }}
{{- end }}
{{- $_ := set $spec "replicas" $values.replicas }}
{{- $_ := set $manager "image" (include "hookgate.image" .root) }}
{{- $_ := set $manager "imagePullPolicy" $values.image.pullPolicy }}
{{- $_ := set $manager "args" (concat $manager.args $values.args) }}
{{- $_ := set $manager "env" $env }}
{{- $_ := set $manager "resources" $values.resources }}
{{- with $values.image.pullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end }}
{{- range $key := list "nodeSelector" "affinity" "priorityClassName" "tolerations" }}
{{- $_ := unset $pod $key }}
{{- with index $values $key }}{{ $_ := set $pod $key . }}{{ end }}
{{- end }}
{{- end }}
