variable "name" {
  type        = string
  description = "Name of the console in DNS, as floe.example.org. It has to lead to the output public_ip."
}

variable "machine_name" {
  type        = string
  default     = "floe-console"
  description = "Name of the machine, and of its role: lower-case letters, digits and \"-\", at most 40 characters."
  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$", var.machine_name))
    error_message = "Lower-case letters, digits and \"-\", a letter first; at most 40 characters."
  }
}

variable "region" {
  type        = string
  description = "Region, as eu-central-1; the same as the provider's."
  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", var.region))
    error_message = "A region is written as eu-central-1."
  }
}

variable "ami" {
  type        = string
  description = "Image of Debian 12 for the architecture of the instance type (ami-…). A later change makes no new machine."
  validation {
    condition     = can(regex("^ami-[0-9a-f]{8,17}$", var.ami))
    error_message = "An image is written as ami- and 8 to 17 hexadecimal digits."
  }
}

variable "instance_type" {
  type        = string
  default     = "m7i.large"
  description = "Type of the machine; 4 GiB of memory at least."
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]*\\.[a-z0-9-]+$", var.instance_type))
    error_message = "A type is written as m7i.large."
  }
}

variable "subnet_id" {
  type        = string
  description = "Subnet of the machine, with a way to the Internet."
}

variable "security_group_ids" {
  type        = list(string)
  description = "Security groups: the output console_security_group_id of network_aws."
  validation {
    condition     = length(var.security_group_ids) > 0
    error_message = "Without one the machine would be in the default group of its network."
  }
}

variable "root_size_gib" {
  type        = number
  default     = 100
  description = "Size of its disk in GiB. The control database is on it, which grows with the fleet."
  validation {
    condition     = var.root_size_gib >= 30 && var.root_size_gib <= 16384
    error_message = "30 to 16384 GiB."
  }
}

variable "protected" {
  type        = bool
  default     = true
  description = "Nobody can terminate the machine before this is set to false."
}

variable "archive" {
  type        = object({ url = string, sha256 = string })
  description = "A checkout of Floe as .tar.gz and its SHA-256: see console_user_data."
}

variable "acme_email" {
  type        = string
  default     = ""
  description = "Address that the certificate authority writes to; empty: none."
}

variable "certificate_parameter" {
  type        = string
  default     = ""
  description = "SecureString of the parameter store, as /floe/console-certificate, with certificate, chain and key in PEM; empty: by ACME."
  validation {
    condition     = var.certificate_parameter == "" || can(regex("^/[A-Za-z0-9._/-]{1,200}$", var.certificate_parameter))
    error_message = "It begins with \"/\" and consists of letters, digits and . _ / -."
  }
}

variable "tags" {
  type        = map(string)
  default     = {}
  description = "Tags of everything that is made."
}
