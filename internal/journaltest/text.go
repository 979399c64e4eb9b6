package journaltest

import "iter"

// Text joins the stored lines of a run.
func Text(lines iter.Seq2[[]byte, error]) (string, error) {
	var text []byte
	for line, err := range lines {
		if err != nil {
			return "", err
		}
		text = append(text, line...)
	}
	return string(text), nil
}
