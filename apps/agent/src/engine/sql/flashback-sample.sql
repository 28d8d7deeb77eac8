-- What an image takes in the flashback log, from pages that were changed last; bytes.
select pages, page_bytes, image_bytes from polar_flashback_log_sample()
