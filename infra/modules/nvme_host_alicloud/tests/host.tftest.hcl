mock_provider "alicloud" {}

variables {
  name               = "db1"
  region             = "eu-central-1"
  image_id           = "debian_12_6_x64_20G_alibase_20240711.vhd"
  vswitch_id         = "vsw-1"
  security_group_ids = ["sg-1"]
  archive = {
    url    = "https://files.example.org/floe.tar.gz"
    sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  }
  console = {
    url       = "https://console.example.org"
    authority = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  }
  enrolment_secret = "enrolment/db1"
}

run "local_disks" {
  assert {
    condition     = alicloud_instance.host.deletion_protection
    error_message = "Local disks go with the machine: it is protected unless somebody says otherwise."
  }
  assert {
    condition     = jsondecode(alicloud_ram_policy.token.policy_document).Statement[0].Resource == ["acs:kms:eu-central-1:*:secret/enrolment/db1"]
    error_message = "The machine reads its own token and no other secret."
  }
  assert {
    condition     = alicloud_ram_role_policy_attachment.token.role_name == "floe-host-db1" && alicloud_instance.host.role_name == "floe-host-db1"
    error_message = "The machine has the role that may read its token."
  }
  assert {
    condition     = strcontains(module.user_data.user_data, "#!/usr/bin/python3") && strcontains(module.user_data.user_data, "https://kms.eu-central-1.aliyuncs.com")
    error_message = "The machine asks the secrets manager of its region."
  }
  assert {
    condition     = length(base64gzip(module.user_data.user_data)) < 16384 * 4 / 3
    error_message = "The cloud takes 16 KiB of user data at most."
  }
  assert {
    condition     = length(alicloud_instance.host.data_disks) == 0
    error_message = "There is no empty disk but the local ones."
  }
}

run "no_local_disks" {
  command = plan
  variables {
    instance_type = "ecs.g7.xlarge"
  }
  expect_failures = [var.instance_type]
}

run "the_token_in_place_of_its_secret" {
  command = plan
  variables {
    enrolment_secret = "floe-thisIsTheToken"
  }
  expect_failures = [var.enrolment_secret]
}

run "wrong_values" {
  command = plan
  variables {
    name                    = "DB 1"
    region                  = "'; id"
    image_id                = "a b"
    security_group_ids      = []
    enrolment_secret        = "\"; import os"
    root_size_gib           = 1
    internet_bandwidth_mbit = 1000
  }
  expect_failures = [var.name, var.region, var.image_id, var.security_group_ids, var.enrolment_secret, var.root_size_gib, var.internet_bandwidth_mbit]
}
