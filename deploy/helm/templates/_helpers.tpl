{{- define "stroppy.name" -}}
{{- if contains "stroppy" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-stroppy" .Release.Name | trunc 52 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "stroppy.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "stroppy.labels" -}}
{{ include "stroppy.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "stroppy.account" -}}
{{ .Values.serviceAccount.existingName | default (include "stroppy.name" .) }}
{{- end }}

{{- define "stroppy.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (.Chart.AppVersion | replace "+" "_") }}
{{- end }}

{{- /* Whether something is run: by a cluster, or by arguments and variables that name a database. */ -}}
{{- define "stroppy.runs" -}}
{{- if or .Values.run.cluster .Values.run.arguments .Values.run.env }}yes{{ end -}}
{{- end }}

{{- /* The cluster with the image of stroppy, unless the value names one. */ -}}
{{- define "stroppy.cluster" -}}
{{- $cluster := .Values.run.cluster -}}
{{- $cluster -}}
{{- if not (contains "tool-image=" $cluster) -}}
{{ contains "?" $cluster | ternary "&" "?" }}tool-image={{ include "stroppy.image" . | urlquery }}
{{- end -}}
{{- if not (contains "pull=" $cluster) -}}
&pull={{ .Values.image.pullPolicy }}
{{- end -}}
{{- end }}
