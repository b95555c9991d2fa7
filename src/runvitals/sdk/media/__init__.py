"""What `log` records besides numbers: images, tables, sounds, films, pages, figures; and files of a run."""
