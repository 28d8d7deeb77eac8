variable "name" {
  type        = string
  description = "Name of the network, the beginning of the names in it: lower-case letters, digits and \"-\"."
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,30}$", var.name))
    error_message = "Lower-case letters, digits and \"-\", at most 31 characters, a letter first."
  }
}

variable "cidr" {
  type        = string
  default     = "10.20.0.0/16"
  description = "IPv4 addresses of the network, private ones, with a prefix of 16 to 24 bits."
  validation {
    condition     = can(cidrnetmask(var.cidr)) && can(regex("^(10|172\\.(1[6-9]|2[0-9]|3[01])|192\\.168)\\..*/(1[6-9]|2[0-4])$", var.cidr))
    error_message = "Private IPv4 addresses with a prefix of 16 to 24 bits, as 10.20.0.0/16."
  }
}

variable "zones" {
  type        = list(string)
  description = "Zones, one vSwitch in each: two at least, because a cluster within one fails with it."
  validation {
    condition     = length(var.zones) >= 2 && length(var.zones) <= 4 && length(distinct(var.zones)) == length(var.zones)
    error_message = "Two to four different zones."
  }
}

variable "client_cidrs" {
  type        = list(string)
  default     = []
  description = "IPv4 addresses from which clients reach instances; none by default. 0.0.0.0/0 is refused."
  validation {
    condition     = alltrue([for c in var.client_cidrs : can(cidrnetmask(c)) && !endswith(c, "/0")])
    error_message = "IPv4 addresses with a prefix; not the whole Internet."
  }
}

variable "console_cidrs" {
  type        = list(string)
  default     = []
  description = "IPv4 addresses from which people reach the console (ports 80 and 443); none by default. A certificate by ACME needs 0.0.0.0/0."
  validation {
    condition     = alltrue([for c in var.console_cidrs : can(cidrnetmask(c))])
    error_message = "IPv4 addresses with a prefix, as 198.51.100.0/24."
  }
}

variable "agent_port" {
  type        = number
  default     = 3001
  description = "Port of the agents. Instances get ports 2499 to 2998 above it."
  validation {
    condition     = var.agent_port >= 1024 && var.agent_port <= 62000
    error_message = "1024 to 62000."
  }
}

variable "tags" {
  type        = map(string)
  default     = {}
  description = "Tags of everything that is made."
}
