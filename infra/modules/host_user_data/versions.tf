terraform {
  # ephemeral variables are from 1.10, write-only arguments from 1.11
  required_version = ">= 1.11"
}
