"""Tables as pages: Markdown, HTML, terminal and figures."""
