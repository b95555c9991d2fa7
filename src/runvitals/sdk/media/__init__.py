"""What `log` records besides numbers: images, tables, audio, videos, HTML pages, figures; and saved files."""
