variable "project" {
  description = "Project of Google Cloud that pays."
  type        = string
}

variable "zone" {
  description = "Zone of all nodes. One zone keeps the network between them short, and fails as a whole."
  type        = string
  default     = "europe-west1-b"
}

variable "name" {
  description = "Name of the Kubernetes cluster."
  type        = string
  default     = "stroppy"
}

variable "nodes" {
  description = "Machines. A server of the database and a worker share one where there are fewer than both need."
  type        = number
  default     = 5
}

variable "machine_type" {
  description = "Machine type of the nodes."
  type        = string
  default     = "n2-standard-8"
}

variable "image_repository" {
  description = "Where the image of stroppy was pushed to."
  type        = string
}

variable "image_tag" {
  description = "Its tag."
  type        = string
}

variable "cluster" {
  description = "The database, as --cluster takes it. Empty: nothing is run, and the account gets its rights."
  type        = string
  default     = "k8s/etcd:3"
}

variable "workers" {
  description = "Pods from which the load comes; 0: from the pod of the run."
  type        = number
  default     = 2
}

variable "arguments" {
  description = "Further arguments of the run."
  type        = list(string)
  default     = ["--duration", "10m", "--nemesis", "kill leader every 2m for 10s"]
}
