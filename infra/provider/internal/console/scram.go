package console

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

const scramIterations = 4096

// ScramVerifier makes the verifier that PostgreSQL stores of a password, so that the password itself goes nowhere. A
// password is printable ASCII: of others the normalisation (RFC 4013) would have to be known.
func ScramVerifier(password string) (string, error) {
	salt := make([]byte, 16)
	if _, err := rand.Read(salt); err != nil {
		return "", err
	}
	return scramVerifier(password, salt)
}

func scramVerifier(password string, salt []byte) (string, error) {
	if password == "" || strings.ContainsFunc(password, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", errors.New("a password must be printable ASCII, and not empty")
	}
	salted, err := pbkdf2.Key(sha256.New, password, salt, scramIterations, sha256.Size)
	if err != nil {
		return "", err
	}
	sign := func(text string) []byte {
		mac := hmac.New(sha256.New, salted)
		mac.Write([]byte(text))
		return mac.Sum(nil)
	}
	stored := sha256.Sum256(sign("Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s",
		scramIterations, encode(salt), encode(stored[:]), encode(sign("Server Key"))), nil
}
