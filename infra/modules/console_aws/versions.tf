terraform {
  # ephemeral variables are from 1.10, write-only arguments from 1.11
  required_version = ">= 1.11"
  required_providers {
    aws = {
      source  = "registry.terraform.io/hashicorp/aws"
      version = "5.100.0"
    }
  }
}
