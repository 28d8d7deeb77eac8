# Two hosts with local NVMe disks, each in a zone of its own. The console exists already, and was asked for a token for each.
terraform {
  required_version = ">= 1.11"
  required_providers {
    alicloud = {
      source  = "registry.terraform.io/aliyun/alicloud"
      version = "1.132.0"
    }
  }
}

variable "region" {
  type        = string
  default     = "eu-central-1"
  description = "Region, as eu-central-1; zones a and b of it are used."
}

variable "image_id" {
  type        = string
  description = "Image of Debian 12 for x86-64 in that region."
}

variable "archive" {
  type        = object({ url = string, sha256 = string })
  description = "A checkout of Floe, or its packages, as .tar.gz and its SHA-256."
}

variable "console" {
  type        = object({ url = string, authority = string })
  description = "Address of the console and fingerprint of its authority."
}

provider "alicloud" {
  region = var.region
}

locals {
  hosts = { db1 = "a", db2 = "b" }
}

module "network" {
  source = "../../modules/network_alicloud"
  name   = "floe"
  zones  = [for letter in values(local.hosts) : "${var.region}${letter}"]
}

module "host" {
  for_each           = local.hosts
  source             = "../../modules/nvme_host_alicloud"
  name               = each.key
  region             = var.region
  image_id           = var.image_id
  vswitch_id         = module.network.vswitch_ids["${var.region}${each.value}"]
  security_group_ids = [module.network.host_security_group_id]
  archive            = var.archive
  console            = var.console
  enrolment_secret   = "enrolment/${each.key}"
}

output "hosts" {
  description = "Address and zone of each host."
  value       = { for name, host in module.host : name => { address = host.private_ip, power_supply = host.power_supply } }
}
