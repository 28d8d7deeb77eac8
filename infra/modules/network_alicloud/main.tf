locals {
  first_port = var.agent_port + 2499
  last_port  = var.agent_port + 2998
}

resource "alicloud_vpc" "this" {
  vpc_name   = var.name
  cidr_block = var.cidr
  tags       = var.tags
}

resource "alicloud_vswitch" "zone" {
  for_each     = { for i, zone in var.zones : zone => i }
  vswitch_name = "${var.name}-${each.key}"
  vpc_id       = alicloud_vpc.this.id
  zone_id      = each.key
  cidr_block   = cidrsubnet(var.cidr, 4, each.value)
  tags         = var.tags
}

# A group that hosts are in, and one that the console is in: who may reach whom is said by group, not by address. Without
# "Drop" whoever is in a group reaches every port of all others in it.
resource "alicloud_security_group" "host" {
  name                = "${var.name}-host"
  description         = "Hosts: reached by the console, each other and clients"
  vpc_id              = alicloud_vpc.this.id
  inner_access_policy = "Drop"
  tags                = var.tags
}

resource "alicloud_security_group" "console" {
  name                = "${var.name}-console"
  description         = "The console of Floe"
  vpc_id              = alicloud_vpc.this.id
  inner_access_policy = "Drop"
  tags                = var.tags
}

resource "alicloud_security_group_rule" "agent_from_console" {
  type                     = "ingress"
  security_group_id        = alicloud_security_group.host.id
  description              = "agent, from the console only"
  source_security_group_id = alicloud_security_group.console.id
  nic_type                 = "intranet"
  ip_protocol              = "tcp"
  port_range               = "${var.agent_port}/${var.agent_port}"
}

resource "alicloud_security_group_rule" "instances_from_members" {
  for_each                 = { host = alicloud_security_group.host.id, console = alicloud_security_group.console.id }
  type                     = "ingress"
  security_group_id        = alicloud_security_group.host.id
  description              = "instances, from ${each.key}"
  source_security_group_id = each.value
  nic_type                 = "intranet"
  ip_protocol              = "tcp"
  port_range               = "${local.first_port}/${local.last_port}"
}

resource "alicloud_security_group_rule" "instances_from_clients" {
  for_each          = toset(var.client_cidrs)
  type              = "ingress"
  security_group_id = alicloud_security_group.host.id
  description       = "instances, from clients"
  cidr_ip           = each.value
  nic_type          = "intranet"
  ip_protocol       = "tcp"
  port_range        = "${local.first_port}/${local.last_port}"
}

# enrolment: the one call that a host makes
resource "alicloud_security_group_rule" "console_from_hosts" {
  type                     = "ingress"
  security_group_id        = alicloud_security_group.console.id
  description              = "enrolment, from hosts"
  source_security_group_id = alicloud_security_group.host.id
  nic_type                 = "intranet"
  ip_protocol              = "tcp"
  port_range               = "3080/3080"
}

# 443 for people; 80 for whoever leaves out the s, and for a certificate by ACME
resource "alicloud_security_group_rule" "console_from_people" {
  for_each          = { for pair in setproduct(var.console_cidrs, [80, 443]) : "${pair[0]}:${pair[1]}" => { cidr = pair[0], port = pair[1] } }
  type              = "ingress"
  security_group_id = alicloud_security_group.console.id
  description       = "the console, from people"
  cidr_ip           = each.value.cidr
  nic_type          = "intranet"
  ip_protocol       = "tcp"
  port_range        = "${each.value.port}/${each.value.port}"
}
