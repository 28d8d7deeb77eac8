# Three hosts with local NVMe disks, each in a zone of its own. The console exists already, and was asked for a token for each.
terraform {
  required_version = ">= 1.11"
  required_providers {
    aws = {
      source  = "registry.terraform.io/hashicorp/aws"
      version = "5.100.0"
    }
  }
}

variable "region" {
  type        = string
  default     = "eu-central-1"
  description = "Region, as eu-central-1."
}

variable "ami" {
  type        = string
  description = "Image of Debian 12 for x86-64 in that region (ami-…)."
}

variable "archive" {
  type        = object({ url = string, sha256 = string })
  description = "A checkout of Floe as .tar.gz and its SHA-256."
}

variable "console" {
  type        = object({ url = string, authority = string })
  description = "Address of the console and fingerprint of its authority."
}

variable "enrolment_tokens" {
  type        = map(string)
  ephemeral   = true
  sensitive   = true
  description = "One-time token of each host, by its name: db1, db2, db3. Give them as TF_VAR_enrolment_tokens."
}

provider "aws" {
  region = var.region
}

locals {
  hosts = { db1 = "a", db2 = "b", db3 = "c" }
}

module "network" {
  source = "../../modules/network_aws"
  name   = "floe"
  zones  = [for letter in values(local.hosts) : "${var.region}${letter}"]
}

module "host" {
  for_each           = local.hosts
  source             = "../../modules/nvme_host_aws"
  name               = each.key
  region             = var.region
  ami                = var.ami
  subnet_id          = module.network.subnet_ids["${var.region}${each.value}"]
  security_group_ids = [module.network.host_security_group_id]
  archive            = var.archive
  console            = var.console
  enrolment_token    = var.enrolment_tokens[each.key]
}

output "hosts" {
  description = "Address and availability zone of each host."
  value       = { for name, host in module.host : name => { address = host.private_ip, power_supply = host.power_supply } }
}
