"""What users write and upload, made safe to show: Markdown, pictures, and images from elsewhere."""
