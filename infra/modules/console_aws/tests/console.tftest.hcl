mock_provider "aws" {}

variables {
  name               = "floe.example.org"
  region             = "eu-central-1"
  ami                = "ami-0123456789abcdef0"
  subnet_id          = "subnet-1"
  security_group_ids = ["sg-1"]
  archive = {
    url    = "https://files.example.org/floe.tar.gz"
    sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  }
}

run "by_acme" {
  assert {
    condition     = aws_instance.console.metadata_options[0].http_tokens == "required" && aws_instance.console.root_block_device[0].encrypted
    error_message = "The metadata service asks for a session, and the disk is encrypted."
  }
  assert {
    condition     = aws_instance.console.disable_api_termination && !aws_instance.console.root_block_device[0].delete_on_termination
    error_message = "The control database outlives a mistake."
  }
  assert {
    condition     = length(aws_iam_role_policy.certificate) == 0
    error_message = "It may read nothing that it does not need."
  }
  assert {
    condition     = endswith(output.enrolment_url, ":3080") && startswith(output.enrolment_url, "http://")
    error_message = "Hosts are enrolled within the network."
  }
  assert {
    condition     = length(base64gzip(module.user_data.user_data)) < 16384 * 4 / 3
    error_message = "The cloud takes 16 KiB of user data at most."
  }
}

run "with_a_certificate" {
  variables {
    certificate_parameter = "/floe/console-certificate"
  }
  assert {
    condition     = endswith(jsondecode(aws_iam_role_policy.certificate[0].policy).Statement[0].Resource, ":parameter/floe/console-certificate")
    error_message = "It may read its certificate and nothing else."
  }
  assert {
    condition     = strcontains(module.user_data.user_data, "\"Name\":\"/floe/console-certificate\"") || strcontains(module.user_data.user_data, "\\\"Name\\\":\\\"/floe/console-certificate\\\"")
    error_message = "It asks the store for its certificate."
  }
}

run "wrong_values" {
  command = plan
  variables {
    machine_name          = "Console 1"
    region                = "'; id"
    ami                   = "debian"
    instance_type         = "large"
    security_group_ids    = []
    root_size_gib         = 1
    certificate_parameter = "x'"
  }
  expect_failures = [var.machine_name, var.region, var.ami, var.instance_type, var.security_group_ids, var.root_size_gib, var.certificate_parameter]
}
