variables {
  archive = {
    url    = "https://files.example.org/floe.tar.gz"
    sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  }
}

run "files" {
  assert {
    condition     = strcontains(output.files[0].content, "FLOE_ARCHIVE_SHA256='e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'\n")
    error_message = "The machine knows which archive is meant."
  }
}

run "what_a_shell_would_read" {
  command = plan
  variables {
    archive = { url = "https://x/';id", sha256 = "1" }
  }
  expect_failures = [var.archive]
}
