package redact

// The kinds of personal data. They are not in [Secrets].
const (
	Card  Kind = "card"  // number of a payment card: issuer's range and length, Luhn
	IBAN  Kind = "iban"  // International Bank Account Number: country's length and structure, mod 97
	Email Kind = "email" // e-mail address
	Phone Kind = "phone" // telephone number, international or in a national grouping
	SSN   Kind = "ssn"   // Social Security number of the USA
	IP    Kind = "ip"    // IPv4 or IPv6 address, or a prefix of such addresses
	MAC   Kind = "mac"   // EUI-48 or EUI-64 of a network interface
)

// personalDetectors returns the detectors of one kind of personal data: nil for any other kind.
func personalDetectors(kind Kind) []detector {
	switch kind {
	case Email:
		return emailDetectors
	}
	return nil
}
