// Package username normalizes names of people, as servers authenticate them.
package username

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/secure/precis"
)

// maxName is the largest size of the name of a person or a group, in bytes.
const maxName = 256

// Parse returns the name of a person in the form in which names are compared, so that spellings that differ
// in letter case, width or composition are one person (UsernameCaseMapped of RFC 8265, with single spaces
// between parts). Mail addresses, subjects of OpenID Connect such as
// auth0|abc123, and DOMAIN\user are names.
func Parse(text string) (string, error) {
	if err := Check(text); err != nil {
		return "", err
	}
	parts := strings.Split(Trim(text), " ")
	for i, part := range parts {
		name, err := mapCase(part)
		switch {
		case part == "":
			return "", errors.New("it has two spaces in a row")
		case err != nil:
			return "", errors.New("it has characters that names of people do not have, such as symbols or letters of both directions")
		}
		parts[i] = name
	}
	name := strings.Join(parts, " ")
	return name, Check(name)
}

// mapCase applies the profile until nothing changes, since a letter that it composes or maps may be mapped again.
func mapCase(part string) (name string, err error) {
	for range 4 {
		before := part
		if part, err = precis.UsernameCaseMapped.String(part); err != nil || part == before {
			return part, err
		}
	}
	return "", errors.New("no stable form")
}

// Check reports why a text cannot be the name of a person or a group.
func Check(text string) error {
	switch {
	case Trim(text) == "":
		return errors.New("it is empty")
	case len(text) > maxName:
		return fmt.Errorf("it has %d bytes, more than %d", len(text), maxName)
	case !utf8.ValidString(text):
		return errors.New("it is not valid UTF-8")
	}
	return nil
}

// Trim removes the spaces around a word, as they are not part of the value of a header.
func Trim(text string) string { return strings.Trim(text, " \t") }
