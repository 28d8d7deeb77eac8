locals {
  # every value is of harmless characters, and stands in quotes all the same: a shell reads this file
  settings = "FLOE_ARCHIVE_URL='${var.archive.url}'\nFLOE_ARCHIVE_SHA256='${var.archive.sha256}'\n"
}
