{{/*
hookgate-sidecar.pod is what the spec of the Pod needs besides the container and the volume: Kubernetes would set
HOOKGATE_PORT and more for a Service of that name, where HOOKGATE_… is how flags are set.
*/}}
{{- define "hookgate-sidecar.pod" -}}
enableServiceLinks: false
{{- end }}

{{/* hookgate-sidecar.container is the gateway's container, an item of containers. deploy/components/sidecar says why. */}}
{{- define "hookgate-sidecar.container" -}}
{{- $values := index .Values "hookgate-sidecar" }}
{{- $gateway := dict "Values" $values "Chart" (index .Subcharts "hookgate-sidecar").Chart }}
{{- $memory := include "hookgate.goMemoryLimit" $gateway }}
- name: hookgate
  image: {{ include "hookgate.image" $gateway | quote }}
  args:
  - serve
  - --cert-dir=/etc/hookgate/certs
  - {{ printf "--sidecar=%s" $values.extension | quote }}
  - --http-address=:9443
  - --allow-anonymous-callers
  - --health-addr=:9440
  - --shutdown-delay=10s
  - --log-format=json
  {{- range $values.args }}
  - {{ . | quote }}
  {{- end }}
  {{- if or $values.env $memory }}
  env:
  {{- with $memory }}
  - name: GOMEMLIMIT
    value: {{ . }}
  {{- end }}
  {{- with $values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- end }}
  ports:
  - name: https
    containerPort: 9443
  - name: health
    containerPort: 9440
  startupProbe:
    httpGet:
      path: /readyz
      port: health
    initialDelaySeconds: 2
    periodSeconds: 1
    failureThreshold: 3600
  readinessProbe:
    httpGet:
      path: /readyz
      port: health
    periodSeconds: 5
  livenessProbe:
    httpGet:
      path: /healthz
      port: health
    periodSeconds: 4
    timeoutSeconds: 4
    terminationGracePeriodSeconds: 1
  resources:
    {{- toYaml $values.resources | nindent 4 }}
  securityContext:
    allowPrivilegeEscalation: false
    privileged: false
    readOnlyRootFilesystem: true
    runAsNonRoot: true
    runAsUser: 65532
    capabilities:
      drop: [ALL]
    seccompProfile:
      type: RuntimeDefault
  terminationMessagePolicy: FallbackToLogsOnError
  volumeMounts:
  - name: hookgate-certs
    mountPath: /etc/hookgate/certs
    readOnly: true
  {{- with $values.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* hookgate-sidecar.volume is the volume of the gateway's certificates, an item of volumes. */}}
{{- define "hookgate-sidecar.volume" -}}
{{- $values := index .Values "hookgate-sidecar" }}
- name: hookgate-certs
  projected:
    defaultMode: 0444
    sources:
    - secret:
        name: {{ $values.certificateSecret }}
        items:
        - key: tls.crt
          path: tls.crt
        - key: tls.key
          path: tls.key
    - secret:
        name: {{ $values.callersSecret }}
        optional: true
        items:
        - key: ca.crt
          path: ca.crt
{{- end }}
