{{/* The name of the release's objects, at most 45 characters, so that a suffix fits. */}}
{{- define "schemadesk.name" -}}
{{- ternary .Release.Name (printf "%s-schemadesk" .Release.Name) (contains "schemadesk" .Release.Name) | trunc 45 | trimSuffix "-" }}
{{- end }}

{{- define "schemadesk.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{/* Labels that select the pods of a program: (list $ "web"). */}}
{{- define "schemadesk.selector" -}}
app.kubernetes.io/name: schemadesk
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* The environment of every program. Secrets are references; only migrations get the owner's address. */}}
{{- define "schemadesk.environment" -}}
{{- range $name := list "SECRET_KEY" "DATABASE_URL" "REDIS_URL" }}
- name: {{ $name }}
  valueFrom: {secretKeyRef: {name: {{ $.Values.secret | quote }}, key: {{ $name }}}}
{{- end }}
{{- range $name := list "SECRET_KEY_FALLBACKS" "SPARK_REMOTE" }}
- name: {{ $name }}
  valueFrom: {secretKeyRef: {name: {{ $.Values.secret | quote }}, key: {{ $name }}, optional: true}}
{{- end }}
- {name: SCHEMADESK_HOSTS, value: {{ join "," .Values.hosts | quote }}}
- {name: SCHEMADESK_URL, value: {{ printf "https://%s" (first .Values.hosts) | quote }}}
- {name: SCHEMADESK_TRUSTED_PROXIES, value: {{ .Values.trustedProxies | quote }}}
- {name: SCHEMADESK_HOT_PATH, value: "1"}
- {name: LOG_FORMAT, value: json}
{{- if .Values.outgoingSecrets }}
- {name: SCHEMADESK_SECRETS_DIR, value: /etc/schemadesk/secrets}
{{- end }}
{{- range $name, $value := .Values.settings }}
- {name: {{ $name }}, value: {{ ternary $value (toJson $value) (kindIs "string" $value) | quote }}}
{{- end }}
{{- end }}

{{/* A pod's specification: (dict "root" $ "component" "web" "args" (list …) "resources" … "more" "probes and ports"). */}}
{{- define "schemadesk.pod" -}}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
containers:
  - name: {{ .component }}
    image: {{ printf "%s:%s" .root.Values.image.repository (default .root.Chart.AppVersion .root.Values.image.tag) | quote }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    args: {{ toJson .args }}
    env:
      {{- include "schemadesk.environment" .root | trim | nindent 6 }}
      {{- if eq .component "migrate" }}
      - name: DATABASE_OWNER_URL
        valueFrom: {secretKeyRef: {name: {{ .root.Values.secret | quote }}, key: DATABASE_OWNER_URL}}
      {{- end }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
    resources: {{ toJson .resources }}
    volumeMounts:
      - {name: data, mountPath: /var/lib/schemadesk}
      - {name: tmp, mountPath: /tmp}
      {{- if .root.Values.outgoingSecrets }}
      - {name: outgoing, mountPath: /etc/schemadesk/secrets, readOnly: true}
      {{- end }}
    {{- with .more }}
    {{- . | nindent 4 }}
    {{- end }}
volumes:
  - {name: data, emptyDir: {}}
  - {name: tmp, emptyDir: {}}
  {{- with .root.Values.outgoingSecrets }}
  - {name: outgoing, secret: {secretName: {{ . | quote }}, defaultMode: 0440}}
  {{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with .root.Values.affinity }}
affinity: {{ toJson . }}
{{- end }}
{{- end }}
