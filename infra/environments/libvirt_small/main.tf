# Three hosts with emulated NVMe disks on one hypervisor, for trials. The console exists already.
terraform {
  required_version = ">= 1.11"
  required_providers {
    libvirt = {
      source  = "registry.terraform.io/dmacvicar/libvirt"
      version = "0.8.3"
    }
  }
}

variable "uri" {
  type        = string
  default     = "qemu:///system"
  description = "Address of libvirt, as qemu:///system or qemu+ssh://root@hv1/system."
}

variable "hypervisor" {
  type        = string
  description = "Name of the machine that libvirt runs on."
}

variable "image" {
  type        = string
  description = "Path or https address of the image of Debian 12 (generic, qcow2)."
}

variable "archive" {
  type        = object({ url = string, sha256 = string })
  description = "A checkout of Floe, or its packages, as .tar.gz and its SHA-256."
}

variable "console" {
  type        = object({ url = string, authority = string })
  description = "Address of the console and fingerprint of its authority."
}

variable "token_directory" {
  type        = string
  default     = "/etc/floe-tokens"
  description = "Directory on the hypervisor with a file for each host, by its name: db1, db2, db3."
}

provider "libvirt" {
  uri = var.uri
}

resource "libvirt_volume" "image" {
  name   = "floe-debian-12.qcow2"
  pool   = "default"
  source = var.image
  format = "qcow2"
}

module "host" {
  for_each             = toset(["db1", "db2", "db3"])
  source               = "../../modules/nvme_host_libvirt"
  name                 = each.key
  hypervisor           = var.hypervisor
  base_volume_id       = libvirt_volume.image.id
  archive              = var.archive
  console              = var.console
  enrolment_token_file = "${var.token_directory}/${each.key}"
}

output "hosts" {
  description = "Address of each host."
  value       = { for name, host in module.host : name => { address = host.private_ip, power_supply = host.power_supply } }
}
