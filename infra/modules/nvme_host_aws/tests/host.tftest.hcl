mock_provider "aws" {}

variables {
  name               = "db1"
  region             = "eu-central-1"
  ami                = "ami-0123456789abcdef0"
  subnet_id          = "subnet-1"
  security_group_ids = ["sg-1"]
  archive = {
    url    = "https://files.example.org/floe.tar.gz"
    sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  }
  console = {
    url       = "https://console.example.org"
    authority = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  }
  enrolment_token = "floe-thisIsTheToken"
}

run "local_disks" {
  assert {
    condition     = aws_instance.host.metadata_options[0].http_tokens == "required" && aws_instance.host.root_block_device[0].encrypted
    error_message = "The metadata service asks for a session, and the system's disk is encrypted."
  }
  assert {
    condition     = aws_instance.host.disable_api_termination && aws_instance.host.disable_api_stop
    error_message = "Local disks are empty after a stop: it is protected unless somebody says otherwise."
  }
  assert {
    condition     = strcontains(module.user_data.user_data, "FLOE_DISK_MODEL='Amazon EC2 NVMe Instance Storage'")
    error_message = "Only the disks of the instance store are used."
  }
  assert {
    condition     = !strcontains(module.user_data.user_data, "thisIsTheToken")
    error_message = "The token is not in the user data."
  }
  assert {
    condition     = length(base64gzip(module.user_data.user_data)) < 16384 * 4 / 3
    error_message = "The cloud takes 16 KiB of user data at most."
  }
  assert {
    condition     = aws_ssm_parameter.token.type == "SecureString" && aws_ssm_parameter.token.value_wo == null
    error_message = "The token is write-only: it is read back by nobody."
  }
  assert {
    condition     = length(aws_instance.host.ebs_block_device) == 0
    error_message = "There is no volume where none was asked for."
  }
}

run "another_token_changes_nothing_of_the_machine" {
  command = plan
  variables {
    enrolment_token = "floe-another"
  }
  assert {
    condition     = aws_instance.host.id == run.local_disks.id
    error_message = "The machine stays."
  }
}

run "a_volume" {
  command = plan
  variables {
    instance_type = "m7i.xlarge"
    ebs_data      = { size_gib = 100, iops = 3000, throughput_mib = 125 }
  }
  assert {
    condition     = one(aws_instance.host.ebs_block_device).encrypted && !one(aws_instance.host.ebs_block_device).delete_on_termination
    error_message = "The volume is encrypted and outlives the machine."
  }
  assert {
    condition     = strcontains(module.user_data.user_data, "FLOE_DISK_MODEL='Amazon Elastic Block Store'")
    error_message = "Only the volume is used."
  }
}

run "no_local_disks" {
  command = plan
  variables {
    instance_type = "m7i.xlarge"
  }
  expect_failures = [var.instance_type]
}

run "wrong_values" {
  command = plan
  variables {
    name               = "DB 1"
    region             = "'; id"
    ami                = "debian"
    security_group_ids = []
    enrolment_token    = "secret"
    root_size_gib      = 1
    ebs_data           = { size_gib = 1, iops = 3000, throughput_mib = 125 }
  }
  expect_failures = [var.name, var.region, var.ami, var.security_group_ids, var.enrolment_token, var.root_size_gib, var.ebs_data]
}
