output "credentials" {
  description = "Lets kubectl and stroppy reach the cluster."
  value       = "gcloud container clusters get-credentials ${google_container_cluster.this.name} --zone ${var.zone} --project ${var.project}"
}

output "log" {
  description = "Shows the run."
  value       = "kubectl --namespace ${helm_release.stroppy.namespace} logs --follow job/stroppy-1"
}
