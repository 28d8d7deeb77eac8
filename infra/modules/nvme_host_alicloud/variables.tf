variable "name" {
  type        = string
  description = "Name of the machine and of the host in the console; \"floe host add NAME\" gave the token for it. Lower-case letters, digits and \"-\", at most 40 characters."
  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,38}[a-z0-9])$", var.name))
    error_message = "A host's name consists of lower-case letters, digits and \"-\", and begins with a letter; 2 to 40 characters at this cloud."
  }
}

variable "region" {
  type        = string
  description = "Region, as eu-central-1 or cn-hangzhou; the same as the provider's."
  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+(-[0-9])?$", var.region))
    error_message = "A region is written as eu-central-1 or cn-hangzhou."
  }
}

variable "image_id" {
  type        = string
  description = "Image of Debian 12 for x86-64, as debian_12_…vhd or m-…. A later change makes no new system."
  validation {
    condition     = can(regex("^[a-z0-9][a-zA-Z0-9_.-]{3,120}$", var.image_id))
    error_message = "An image is written as debian_12_….vhd, or m- and letters and digits."
  }
}

variable "instance_type" {
  type        = string
  default     = "ecs.i4.xlarge"
  description = "Type of the machine, of a family with local NVMe disks: ecs.i3, ecs.i4 and later ones that begin with an \"i\"."
  validation {
    condition     = can(regex("^ecs\\.i[3-9][a-z0-9-]*\\.[a-z0-9]+$", var.instance_type))
    error_message = "This family has no local NVMe disks: the types begin with ecs.i3, ecs.i4 or later."
  }
}

variable "vswitch_id" {
  type        = string
  description = "vSwitch of the machine; its zone is a power supply of its own."
}

variable "security_group_ids" {
  type        = list(string)
  description = "Security groups: the console has to reach the agent's port, clients and other members those of instances."
  validation {
    condition     = length(var.security_group_ids) > 0
    error_message = "The cloud makes no machine without one."
  }
}

variable "key_pair" {
  type        = string
  default     = null
  description = "Key pair for logins of people by SSH; none by default, and no group opens port 22."
}

variable "layout" {
  type        = string
  default     = "single"
  description = "What the disks become: \"single\" (exactly one), \"raid0\" or \"lvm\" (two or more, striped)."
}

variable "disk_model" {
  type        = string
  default     = ""
  description = "Pattern of the model of the disks to use: see host_user_data. Empty: every empty local NVMe disk; the machine gets no other empty disk here."
}

variable "root_size_gib" {
  type        = number
  default     = 40
  description = "Size of the system's disk in GiB. It holds Floe and its build, no data."
  validation {
    condition     = var.root_size_gib >= 20 && var.root_size_gib <= 500
    error_message = "20 to 500 GiB."
  }
}

variable "internet_bandwidth_mbit" {
  type        = number
  default     = 100
  description = "What the machine may send to the Internet, in Mbit per second; 0: it has no public address, and the vSwitch needs a NAT gateway, for packages and the archive."
  validation {
    condition     = var.internet_bandwidth_mbit >= 0 && var.internet_bandwidth_mbit <= 100 && floor(var.internet_bandwidth_mbit) == var.internet_bandwidth_mbit
    error_message = "0 to 100 Mbit per second, a whole number."
  }
}

variable "protected" {
  type        = bool
  default     = true
  description = "Nobody can release the machine, and with it its local disks, before this is set to false."
}

variable "archive" {
  type        = object({ url = string, sha256 = string })
  description = "A checkout of Floe, or its packages, as .tar.gz and its SHA-256: see host_user_data."
}

variable "console" {
  type        = object({ url = string, authority = string })
  description = "Address of the console and fingerprint of its authority: see host_user_data."
}

variable "enrolment_secret" {
  type        = string
  description = "Name of the secret in the cloud's secrets manager (KMS), in that region, that holds the one-time token of \"floe host add NAME\". Terraform never reads it."
  validation {
    condition     = can(regex("^[A-Za-z0-9_/+=.@-]{1,64}$", var.enrolment_secret)) && !startswith(var.enrolment_secret, "floe-")
    error_message = "The name of a secret, of letters, digits and _ / + = . @ -, at most 64; not the token itself, which begins with \"floe-\"."
  }
}

variable "tags" {
  type        = map(string)
  default     = {}
  description = "Tags of the machine and its disks."
}
