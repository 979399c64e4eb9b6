package planning

// Parts splits a row of items into parts whose sizes add up to at most limit:
// in order, each part as long as it can be. An item above the limit is a part
// of its own, so no part is empty and every item is in one. The parts are
// half-open ranges of indexes, one after another; no items, no parts. A
// negative size counts as zero.
func Parts(sizes []int, limit int) [][2]int {
	limit = max(limit, -1) // keeps the subtraction within an int
	var parts [][2]int
	start, room := 0, limit
	for i, size := range sizes {
		size = max(size, 0)
		if i > start && size > room {
			parts = append(parts, [2]int{start, i})
			start, room = i, limit
		}
		room -= size
	}
	if start < len(sizes) {
		parts = append(parts, [2]int{start, len(sizes)})
	}
	return parts
}
