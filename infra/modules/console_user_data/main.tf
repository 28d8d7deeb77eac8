module "archive" {
  source  = "../archive"
  archive = var.archive
}

locals {
  unit = <<-UNIT
    [Unit]
    Description=Floe: the console of this machine
    Wants=network-online.target
    After=network-online.target local-fs.target
    StartLimitIntervalSec=0

    [Service]
    Type=oneshot
    RemainAfterExit=yes
    ExecStart=/usr/local/sbin/floe-console-start
    ExecStop=/opt/floe/floe down
    # instances run on when the console is stopped
    KillMode=process
    Restart=on-failure
    RestartSec=30
    TimeoutStartSec=3600

    [Install]
    WantedBy=multi-user.target
  UNIT

  caddyfile = templatefile("${path.module}/Caddyfile.tftpl", {
    name           = var.name
    email          = var.acme_email
    own            = var.certificate_program != ""
    enrolment_port = var.enrolment_port
  })

  certificate_files = var.certificate_program == "" ? [] : [
    { path = "/usr/local/sbin/floe-certificate", permissions = "0700", content = var.certificate_program },
  ]

  cloud_config = {
    hostname = split(".", var.name)[0]
    # as a word, which is what cloud-init's schema takes: it leaves the locale as it is
    locale         = "false"
    package_update = true
    packages       = ["ca-certificates", "caddy", "curl"]
    write_files = concat(module.archive.files, local.certificate_files, [
      # the package brings one of its own
      { path = "/etc/floe/Caddyfile", permissions = "0644", content = local.caddyfile },
      { path = "/etc/floe/console.env", permissions = "0600", content = "FLOE_NAME='${var.name}'\n" },
      { path = "/usr/local/sbin/floe-console-start", permissions = "0755", content = file("${path.module}/start") },
      { path = "/etc/systemd/system/floe-console.service", permissions = "0644", content = local.unit },
    ])
    runcmd = [
      ["systemctl", "daemon-reload"],
      ["systemctl", "enable", "--now", "--no-block", "floe-console.service"],
    ]
  }
}
