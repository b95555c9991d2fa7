"""Values of `log` besides numbers: images, tables, audio, videos, HTML pages, figures; and saved files."""
