mock_provider "alicloud" {}

variables {
  name  = "floe"
  zones = ["eu-central-1a", "eu-central-1b"]
}

run "two_zones" {
  assert {
    condition     = length(distinct([for v in alicloud_vswitch.zone : v.cidr_block])) == 2
    error_message = "Each zone has addresses of its own."
  }
  assert {
    condition     = alicloud_security_group.host.inner_access_policy == "Drop" && alicloud_security_group.console.inner_access_policy == "Drop"
    error_message = "Who is in a group reaches no other member of it but by a rule."
  }
  assert {
    condition     = alicloud_security_group_rule.agent_from_console.source_security_group_id == alicloud_security_group.console.id
    error_message = "Only the console reaches agents."
  }
  assert {
    condition     = length(alicloud_security_group_rule.instances_from_clients) == 0 && length(alicloud_security_group_rule.console_from_people) == 0
    error_message = "Clients and people reach nothing until their addresses are named."
  }
  assert {
    condition     = alicloud_security_group_rule.instances_from_members["host"].port_range == "5500/5999"
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
    condition     = sort([for rule in alicloud_security_group_rule.console_from_people : rule.port_range]) == tolist(["443/443", "80/80"])
    error_message = "People reach the console at 80 and 443."
  }
  assert {
    condition     = length(alicloud_security_group_rule.instances_from_clients) == 1
    error_message = "Clients reach instances."
  }
}

run "public_addresses" {
  command = plan
  variables {
    cidr = "11.0.0.0/16"
  }
  expect_failures = [var.cidr]
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
