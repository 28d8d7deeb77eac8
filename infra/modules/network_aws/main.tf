locals {
  first_port = var.agent_port + 2499
  last_port  = var.agent_port + 2998
}

resource "aws_vpc" "this" {
  # checkov:skip=CKV2_AWS_11:flow logs cost by the byte, and whether and where an account keeps them is its owner's to say
  cidr_block           = var.cidr
  enable_dns_support   = true
  enable_dns_hostnames = true
  tags                 = merge(var.tags, { Name = var.name })
}

# What is in no group of its own reaches nothing and is reached by nobody: AWS lets the members of the default group reach each other.
resource "aws_default_security_group" "this" {
  vpc_id = aws_vpc.this.id
  tags   = merge(var.tags, { Name = "${var.name}-default" })
}

resource "aws_internet_gateway" "this" {
  vpc_id = aws_vpc.this.id
  tags   = merge(var.tags, { Name = var.name })
}

resource "aws_route_table" "this" {
  vpc_id = aws_vpc.this.id
  route {
    cidr_block = "0.0.0.0/0"
    gateway_id = aws_internet_gateway.this.id
  }
  tags = merge(var.tags, { Name = var.name })
}

resource "aws_subnet" "zone" {
  # checkov:skip=CKV_AWS_130:there is no NAT gateway, so a machine without a public address could fetch neither packages nor Floe; groups say who reaches it
  for_each                = { for i, zone in var.zones : zone => i }
  vpc_id                  = aws_vpc.this.id
  availability_zone       = each.key
  cidr_block              = cidrsubnet(var.cidr, 4, each.value)
  map_public_ip_on_launch = true
  tags                    = merge(var.tags, { Name = "${var.name}-${each.key}" })
}

resource "aws_route_table_association" "zone" {
  for_each       = aws_subnet.zone
  subnet_id      = each.value.id
  route_table_id = aws_route_table.this.id
}

# A group that hosts are in, and one that the console is in: who may reach whom is said by group, not by address.
resource "aws_security_group" "host" {
  # checkov:skip=CKV2_AWS_5:nvme_host_aws attaches it to machines, which are made outside this module
  name        = "${var.name}-host"
  description = "Hosts: reached by the console, each other and clients"
  vpc_id      = aws_vpc.this.id
  tags        = merge(var.tags, { Name = "${var.name}-host" })
}

resource "aws_security_group" "console" {
  # checkov:skip=CKV2_AWS_5:console_aws attaches it to its machine, which is made outside this module
  name        = "${var.name}-console"
  description = "The console of Floe"
  vpc_id      = aws_vpc.this.id
  tags        = merge(var.tags, { Name = "${var.name}-console" })
}

resource "aws_vpc_security_group_ingress_rule" "agent_from_console" {
  security_group_id            = aws_security_group.host.id
  description                  = "agent, from the console only"
  referenced_security_group_id = aws_security_group.console.id
  ip_protocol                  = "tcp"
  from_port                    = var.agent_port
  to_port                      = var.agent_port
}

resource "aws_vpc_security_group_ingress_rule" "instances_from_members" {
  for_each                     = { host = aws_security_group.host.id, console = aws_security_group.console.id }
  security_group_id            = aws_security_group.host.id
  description                  = "instances, from ${each.key}"
  referenced_security_group_id = each.value
  ip_protocol                  = "tcp"
  from_port                    = local.first_port
  to_port                      = local.last_port
}

resource "aws_vpc_security_group_ingress_rule" "instances_from_clients" {
  for_each          = toset(var.client_cidrs)
  security_group_id = aws_security_group.host.id
  description       = "instances, from clients"
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = local.first_port
  to_port           = local.last_port
}

# enrolment: the one call that a host makes
resource "aws_vpc_security_group_ingress_rule" "console_from_hosts" {
  security_group_id            = aws_security_group.console.id
  description                  = "enrolment, from hosts"
  referenced_security_group_id = aws_security_group.host.id
  ip_protocol                  = "tcp"
  from_port                    = 3080
  to_port                      = 3080
}

# 443 for people; 80 for whoever leaves out the s, and for a certificate by ACME
resource "aws_vpc_security_group_ingress_rule" "console_from_people" {
  for_each          = { for pair in setproduct(var.console_cidrs, [80, 443]) : "${pair[0]}:${pair[1]}" => { cidr = pair[0], port = pair[1] } }
  security_group_id = aws_security_group.console.id
  description       = "the console, from people"
  cidr_ipv4         = each.value.cidr
  ip_protocol       = "tcp"
  from_port         = each.value.port
  to_port           = each.value.port
}

resource "aws_vpc_security_group_egress_rule" "out" {
  for_each          = { host = aws_security_group.host.id, console = aws_security_group.console.id }
  security_group_id = each.value
  description       = "packages, the archive of Floe, other machines"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"
}
