provider "google" {
  project = var.project
  zone    = var.zone
}

# Nodes that only run containers.
resource "google_service_account" "nodes" {
  account_id   = "${var.name}-nodes"
  display_name = "Nodes of ${var.name}"
}

resource "google_project_iam_member" "nodes" {
  project = var.project
  role    = "roles/container.defaultNodeServiceAccount"
  member  = google_service_account.nodes.member
}

resource "google_container_cluster" "this" {
  name                     = var.name
  location                 = var.zone
  remove_default_node_pool = true
  initial_node_count       = 1
  networking_mode          = "VPC_NATIVE"
  deletion_protection      = false

  ip_allocation_policy {}
}

resource "google_container_node_pool" "this" {
  name       = "nodes"
  cluster    = google_container_cluster.this.name
  location   = var.zone
  node_count = var.nodes

  # A node that is replaced during a run would be a fault that the run knows nothing of.
  management {
    auto_repair  = false
    auto_upgrade = false
  }

  node_config {
    machine_type    = var.machine_type
    image_type      = "COS_CONTAINERD"
    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]

    metadata = {
      disable-legacy-endpoints = "true"
    }
  }
}

data "google_client_config" "this" {}

provider "helm" {
  kubernetes = {
    host                   = "https://${google_container_cluster.this.endpoint}"
    token                  = data.google_client_config.this.access_token
    cluster_ca_certificate = base64decode(google_container_cluster.this.master_auth[0].cluster_ca_certificate)
  }
}

resource "helm_release" "chaos_mesh" {
  name             = "chaos-mesh"
  namespace        = "chaos-mesh"
  create_namespace = true
  repository       = "https://charts.chaos-mesh.org"
  chart            = "chaos-mesh"

  values = [yamlencode({
    chaosDaemon = {
      runtime    = "containerd"
      socketPath = "/run/containerd/containerd.sock"
    }
  })]

  depends_on = [google_container_node_pool.this]
}

resource "helm_release" "stroppy" {
  name             = "stroppy"
  namespace        = "stroppy"
  create_namespace = true
  chart            = "${path.module}/../helm"
  # A run takes as long as it takes.
  wait = false

  values = [yamlencode({
    image = {
      repository = var.image_repository
      tag        = var.image_tag
    }
    run = {
      cluster   = var.cluster
      workers   = var.workers
      arguments = var.cluster == "" ? [] : var.arguments
    }
  })]

  depends_on = [helm_release.chaos_mesh]
}
