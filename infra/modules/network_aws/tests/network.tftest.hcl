mock_provider "aws" {}

variables {
  name  = "floe"
  zones = ["eu-central-1a", "eu-central-1b", "eu-central-1c"]
}

run "three_zones" {
  assert {
    condition     = length(distinct([for s in aws_subnet.zone : s.cidr_block])) == 3
    error_message = "Each zone has a subnet of its own."
  }
  assert {
    condition     = aws_vpc_security_group_ingress_rule.agent_from_console.referenced_security_group_id == aws_security_group.console.id
    error_message = "Only the console reaches agents."
  }
  assert {
    condition     = length(aws_default_security_group.this.ingress) == 0 && length(aws_default_security_group.this.egress) == 0
    error_message = "The default group allows nothing."
  }
  assert {
    condition     = length(aws_vpc_security_group_ingress_rule.instances_from_clients) == 0
    error_message = "Clients reach instances only once their addresses are named."
  }
  assert {
    condition     = length(aws_vpc_security_group_ingress_rule.console_from_people) == 0
    error_message = "People reach the console only once their addresses are named."
  }
  assert {
    condition     = output.instance_ports.first == 5500 && output.instance_ports.last == 5999
    error_message = "The ports are those that the agent gives to instances."
  }
}

run "people_and_clients" {
  command = plan
  variables {
    console_cidrs = ["198.51.100.0/24"]
    client_cidrs  = ["203.0.113.0/24"]
  }
  assert {
    condition     = sort([for rule in aws_vpc_security_group_ingress_rule.console_from_people : tostring(rule.from_port)]) == tolist(["443", "80"])
    error_message = "People reach the console at 80 and 443."
  }
  assert {
    condition     = length(aws_vpc_security_group_ingress_rule.instances_from_clients) == 1
    error_message = "Clients reach instances."
  }
}

run "wrong_values" {
  command = plan
  variables {
    name          = "Floe"
    cidr          = "10.0.0.0/30"
    zones         = ["eu-central-1a", "eu-central-1a"]
    client_cidrs  = ["0.0.0.0/0"]
    console_cidrs = ["198.51.100.0"]
    agent_port    = 80
  }
  expect_failures = [var.name, var.cidr, var.zones, var.client_cidrs, var.console_cidrs, var.agent_port]
}
