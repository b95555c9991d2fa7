"""What is reported, in which words, and which automations react to it: without HTTP and without SQL."""
