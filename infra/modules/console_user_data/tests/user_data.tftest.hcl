variables {
  name = "floe.example.org"
  archive = {
    url    = "https://files.example.org/floe.tar.gz"
    sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  }
}

run "by_acme" {
  assert {
    condition     = startswith(output.user_data, "#cloud-config\n") && contains(yamldecode(output.user_data).packages, "caddy")
    error_message = "It is a cloud-config that brings the proxy."
  }
  assert {
    condition     = strcontains(local.caddyfile, "floe.example.org {\n\treverse_proxy 127.0.0.1:3000\n}")
    error_message = "The name is answered by TLS, by the console."
  }
  assert {
    condition     = strcontains(local.caddyfile, "http://:3080 {\n\thandle /api/enrol {") && strcontains(local.caddyfile, "respond 404")
    error_message = "Without TLS hosts are enrolled and nothing else is answered."
  }
}

run "with_a_certificate" {
  variables {
    certificate_program = "#!/bin/sh\ncat /root/certificate.pem\n"
    acme_email          = "a@example.org"
  }
  assert {
    condition     = strcontains(local.caddyfile, "\ttls /etc/floe/certificate.pem /etc/floe/certificate.pem\n")
    error_message = "The certificate that was given is used."
  }
  assert {
    condition     = contains(yamldecode(output.user_data).write_files[*].path, "/usr/local/sbin/floe-certificate")
    error_message = "The machine knows how to get it."
  }
}

run "wrong_values" {
  command = plan
  variables {
    name                = "floe.example.org {\n}"
    acme_email          = "a b"
    certificate_program = "x"
    enrolment_port      = 3000
  }
  expect_failures = [var.name, var.acme_email, var.certificate_program, var.enrolment_port]
}
