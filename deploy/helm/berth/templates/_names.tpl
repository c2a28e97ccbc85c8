{{- define "berth.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- $full | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "berth.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "berth.labels" -}}
{{ include "berth.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "berth.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "berth.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "berth.image" -}}
{{- $repository := required "image.repository: where you have pushed the image that deploy/Dockerfile makes" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* A duration of Berth's in whole seconds, rounded up. */}}
{{- define "berth.seconds" -}}
{{- $text := toString . -}}
{{- if not (regexMatch "^[0-9]+ *(ms|s|m|h|d)?$" $text) -}}
{{- fail (printf "%s is no duration such as 30s or 5m" $text) -}}
{{- end -}}
{{- $number := regexFind "^[0-9]+" $text | int64 -}}
{{- $unit := regexFind "[a-z]+$" $text | default "s" -}}
{{- if eq $unit "ms" -}}
{{- div (add $number 999) 1000 -}}
{{- else -}}
{{- mul $number (get (dict "s" 1 "m" 60 "h" 3600 "d" 86400) $unit) -}}
{{- end -}}
{{- end -}}

{{/* PostgreSQL and S3 both: then nothing of value lies on a pod's disk, and there may be any number of pods. */}}
{{- define "berth.isShared" -}}
{{- if and .Values.database.existingSecret .Values.config.storage.s3.bucket -}}true{{- end -}}
{{- end -}}

{{/* The delay, the drain, and what is left then. */}}
{{- define "berth.stopSeconds" -}}
{{- $server := .Values.config.server -}}
{{- add (include "berth.seconds" $server.shutdown_delay | int64) (include "berth.seconds" $server.drain | int64) 10 -}}
{{- end -}}

{{- define "berth.graceSeconds" -}}
{{- $needed := include "berth.stopSeconds" . | int64 -}}
{{- if kindIs "invalid" .Values.terminationGracePeriodSeconds -}}
{{- add $needed 5 -}}
{{- else if lt (int64 .Values.terminationGracePeriodSeconds) $needed -}}
{{- fail (printf "terminationGracePeriodSeconds must not be below server.shutdown_delay, server.drain and ten seconds more, which are %d seconds: else running requests are cut" $needed) -}}
{{- else -}}
{{- int64 .Values.terminationGracePeriodSeconds -}}
{{- end -}}
{{- end -}}

{{/* What cannot be is told before anything is made. */}}
{{- define "berth.check" -}}
{{- $v := .Values -}}
{{- $s3 := $v.config.storage.s3 -}}
{{- $metadata := $v.config.metadata -}}
{{- $identity := default dict $v.config.identity -}}
{{- if or $metadata.url $s3.secret_access_key $s3.session_token $s3.credentials_token $s3.access_key_id $identity.admin_api_key $identity.admin_password -}}
{{- fail "secrets do not belong into config, which becomes a ConfigMap: use database, s3 and admin, with Secrets of yours" -}}
{{- end -}}
{{- if or $v.config.data_dir $v.config.server.host $v.config.server.port $metadata.migrate -}}
{{- fail "config: data_dir, server.host, server.port and metadata.migrate (migrationJob.enabled) are the chart's own" -}}
{{- end -}}
{{- if not (include "berth.isShared" .) -}}
{{- if or $v.autoscaling.enabled (gt (int $v.replicaCount) 1) -}}
{{- fail "more than one replica needs database.existingSecret (PostgreSQL) and config.storage.s3.bucket; one without them: replicaCount 1, autoscaling off" -}}
{{- end -}}
{{- end -}}
{{- if and $v.s3.existingSecret (not $s3.bucket) -}}
{{- fail "s3.existingSecret is of no use without config.storage.s3.bucket" -}}
{{- end -}}
{{- if and $v.migrationJob.enabled (not $v.database.existingSecret) -}}
{{- fail "migrationJob is for PostgreSQL: it needs database.existingSecret" -}}
{{- end -}}
{{- end -}}

{{/* Settings without those that are empty, which mean the default. */}}
{{- define "berth.settings" -}}
{{- $kept := dict -}}
{{- range $name, $value := . -}}
{{- if kindIs "map" $value -}}
{{- $inner := include "berth.settings" $value | fromYaml -}}
{{- if $inner -}}{{- $_ := set $kept $name $inner -}}{{- end -}}
{{- else if not (or (kindIs "invalid" $value) (and (kindIs "string" $value) (eq $value "")) (and (kindIs "slice" $value) (not $value))) -}}
{{- $_ := set $kept $name $value -}}
{{- end -}}
{{- end -}}
{{- toYaml $kept -}}
{{- end -}}

{{/* Secrets by reference, for the server and for the Job. */}}
{{- define "berth.databaseEnv" -}}
{{- if .Values.database.existingSecret }}
- name: BERTH_METADATA__URL
  valueFrom: { secretKeyRef: { name: {{ .Values.database.existingSecret | quote }}, key: {{ .Values.database.urlKey | quote }} } }
{{- end }}
{{- if .Values.migrationJob.enabled }}
- name: BERTH_METADATA__MIGRATE
  value: manual
{{- end }}
{{- end -}}

{{- define "berth.s3Env" -}}
{{- if .Values.s3.existingSecret }}
- name: BERTH_STORAGE__S3__ACCESS_KEY_ID
  valueFrom: { secretKeyRef: { name: {{ .Values.s3.existingSecret | quote }}, key: {{ .Values.s3.accessKeyIdKey | quote }} } }
- name: BERTH_STORAGE__S3__SECRET_ACCESS_KEY
  valueFrom: { secretKeyRef: { name: {{ .Values.s3.existingSecret | quote }}, key: {{ .Values.s3.secretAccessKeyKey | quote }} } }
{{- end }}
{{- end -}}
