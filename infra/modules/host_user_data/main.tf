module "archive" {
  source  = "../archive"
  archive = var.archive
}

locals {
  # every value is of harmless characters (variables.tf), and stands in quotes all the same: a shell reads this file
  settings = {
    FLOE_CONSOLE_URL = var.console.url
    FLOE_AUTHORITY   = var.console.authority
    FLOE_LAYOUT      = var.layout
    FLOE_DISK_MODEL  = var.disk_model
  }

  unit = <<-UNIT
    [Unit]
    Description=Floe: the disks and the first start of this host
    Wants=network-online.target
    After=network-online.target local-fs.target
    StartLimitIntervalSec=0

    [Service]
    Type=oneshot
    RemainAfterExit=yes
    ExecStart=/usr/local/sbin/floe-first-start
    KillMode=process
    Restart=on-failure
    RestartSec=30
    TimeoutStartSec=3600

    [Install]
    WantedBy=multi-user.target
  UNIT

  packages = concat(
    ["ca-certificates", "curl", "xfsprogs"],
    var.layout == "raid0" ? ["mdadm"] : var.layout == "lvm" ? ["lvm2"] : [],
  )

  cloud_config = {
    hostname = var.host_name
    # as a word, which is what cloud-init's schema takes: it leaves the locale as it is
    locale         = "false"
    package_update = true
    packages       = local.packages
    write_files = concat(module.archive.files, [
      {
        path        = "/etc/floe/first-start.env"
        permissions = "0600"
        content     = join("", [for name, value in local.settings : "${name}='${value}'\n"])
      },
      { path = "/usr/local/sbin/floe-first-start", permissions = "0755", content = file("${path.module}/first-start") },
      { path = "/usr/local/sbin/floe-enrolment-token", permissions = "0700", content = var.token_program },
      { path = "/etc/systemd/system/floe-host.service", permissions = "0644", content = local.unit },
    ])
    runcmd = [
      ["systemctl", "daemon-reload"],
      ["systemctl", "enable", "--now", "--no-block", "floe-host.service"],
    ]
  }
}
