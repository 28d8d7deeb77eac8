variables {
  host_name = "db1"
  archive = {
    url    = "https://files.example.org/floe.tar.gz"
    sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  }
  console = {
    url       = "https://console.example.org"
    authority = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  }
  token_program = "#!/bin/sh\necho\n"
}

run "one_disk" {
  assert {
    condition     = startswith(output.user_data, "#cloud-config\n") && yamldecode(output.user_data).hostname == "db1"
    error_message = "It is a cloud-config with the host's name."
  }
  assert {
    condition     = yamldecode(output.user_data).locale == "false"
    error_message = "The schema of cloud-init takes a word as locale, and warns of anything else."
  }
  assert {
    condition     = contains(yamldecode(output.user_data).write_files[*].path, "/usr/local/sbin/floe-fetch")
    error_message = "It knows how to fetch Floe."
  }
  assert {
    condition     = !contains(yamldecode(output.user_data).packages, "mdadm")
    error_message = "What is not asked for is not installed."
  }
}

run "striped" {
  variables {
    layout = "raid0"
  }
  assert {
    condition     = contains(yamldecode(output.user_data).packages, "mdadm")
    error_message = "A stripe needs mdadm."
  }
}

run "what_a_shell_would_read" {
  command = plan
  variables {
    host_name     = "a$(id)"
    console       = { url = "https://x';id", authority = "md5:1" }
    disk_model    = "';id;'"
    layout        = "raid5"
    token_program = "floe-token"
  }
  expect_failures = [var.host_name, var.console, var.disk_model, var.layout, var.token_program]
}
