package naming

import "regexp"

// instanceEnd matches the items and the rounds at the end of the title of an instance.
var instanceEnd = regexp.MustCompile(`(\[\d+\]|#\d+(\.\d+)*)*$`)

// WithoutInstance returns the title of a task as it is written, for that of one of its rounds or
// items: Search for Search[3]#2.
func WithoutInstance(title string) string { return instanceEnd.ReplaceAllString(title, "") }
