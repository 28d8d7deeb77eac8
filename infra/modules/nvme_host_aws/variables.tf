variable "name" {
  type        = string
  description = "Name of the machine and of the host in the console; \"floe host add NAME\" gave the token for it. Lower-case letters, digits and \"-\", at most 40 characters."
  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$", var.name))
    error_message = "A host's name consists of lower-case letters, digits and \"-\", and begins with a letter; at most 40 characters."
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
  default     = "i4i.xlarge"
  description = "Type of the machine. Families with local NVMe disks (i3en, i4i, i4g, i7ie, im4gn, is4gen, m6id and others with a \"d\") unless ebs_data is given."
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]*\\.[a-z0-9-]+$", var.instance_type))
    error_message = "A type is written as i4i.xlarge."
  }
  validation {
    condition     = var.ebs_data != null || can(regex("^(i[0-9]|im[0-9]|is[0-9]|[a-z][0-9][a-z]*d[a-z]*\\.)", var.instance_type))
    error_message = "This family has no local NVMe disks: give ebs_data, or another type."
  }
}

variable "subnet_id" {
  type        = string
  description = "Subnet of the machine; its availability zone is a power supply of its own."
}

variable "security_group_ids" {
  type        = list(string)
  description = "Security groups: the console has to reach the agent's port, clients and other members those of instances."
  validation {
    condition     = length(var.security_group_ids) > 0
    error_message = "Without one the machine would be in the default group of its network."
  }
}

variable "layout" {
  type        = string
  default     = "single"
  description = "What the disks become: \"single\" (exactly one), \"raid0\" or \"lvm\" (two or more, striped)."
}

variable "ebs_data" {
  type        = object({ size_gib = number, iops = number, throughput_mib = number })
  default     = null
  description = "A gp3 volume for the data in place of local disks: size in GiB, operations per second, throughput in MiB per second. It outlives a stop of the machine."
  validation {
    condition = var.ebs_data == null ? true : (
      var.ebs_data.size_gib >= 20 && var.ebs_data.size_gib <= 16384 &&
      var.ebs_data.iops >= 3000 && var.ebs_data.iops <= 16000 &&
      var.ebs_data.throughput_mib >= 125 && var.ebs_data.throughput_mib <= 1000
    )
    error_message = "gp3: 20 to 16384 GiB, 3000 to 16000 operations per second, 125 to 1000 MiB per second."
  }
}

variable "root_size_gib" {
  type        = number
  default     = 30
  description = "Size of the system's disk in GiB. It holds Floe and its build, no data."
  validation {
    condition     = var.root_size_gib >= 20 && var.root_size_gib <= 1000
    error_message = "20 to 1000 GiB."
  }
}

variable "protected" {
  type        = bool
  default     = true
  description = "Nobody can terminate or stop the machine before this is set to false. Local disks are empty after a stop."
}

variable "archive" {
  type        = object({ url = string, sha256 = string })
  description = "A checkout of Floe, or its packages, as .tar.gz and its SHA-256: see host_user_data."
}

variable "console" {
  type        = object({ url = string, authority = string })
  description = "Address of the console and fingerprint of its authority: see host_user_data."
}

variable "enrolment_token" {
  type        = string
  ephemeral   = true
  sensitive   = true
  description = "One-time token of \"floe host add NAME\". It is in no plan and no state."
  validation {
    condition     = can(regex("^floe-[A-Za-z0-9_-]+$", var.enrolment_token))
    error_message = "A token begins with \"floe-\"; \"floe host add NAME\" prints it."
  }
}

variable "enrolment_token_version" {
  type        = number
  default     = 1
  description = "Raise it to hand over another token. A spent one changes no plan."
  validation {
    condition     = var.enrolment_token_version >= 1 && floor(var.enrolment_token_version) == var.enrolment_token_version
    error_message = "A whole number from 1."
  }
}

variable "tags" {
  type        = map(string)
  default     = {}
  description = "Tags of everything that is made."
}
