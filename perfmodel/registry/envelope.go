package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/pacer-ml/pacer/perfmodel"
)

// An envelope is the content of one file. It is JSON, so that a person can read the card.
//
// Version 1 has exactly these fields. Sum is the SHA-256, in hexadecimal, of the compact JSON of Card followed
// by Data.
type envelope struct {
	Format  string         `json:"format"` // always envelopeFormat
	Version int            `json:"version"`
	Card    perfmodel.Card `json:"card"`
	Data    []byte         `json:"data"` // bytes of the family's MarshalBinary
	Sum     string         `json:"sum"`
}

const (
	envelopeFormat  = "pacer fitted model"
	envelopeVersion = 1
)

// seal encodes a card and a model's bytes as a file.
func seal(card perfmodel.Card, data []byte) ([]byte, error) {
	sum, err := checksum(card, data)
	if err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(envelope{envelopeFormat, envelopeVersion, card, data, sum}, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}

// open decodes a file that seal wrote, and checks it.
func open(b []byte) (envelope, error) {
	var e envelope
	if err := json.Unmarshal(b, &e); err != nil {
		return envelope{}, fmt.Errorf("not a fitted model: %w", err)
	}
	if e.Format != envelopeFormat {
		return envelope{}, fmt.Errorf("not a fitted model: format %q, want %q", e.Format, envelopeFormat)
	}
	if e.Version != envelopeVersion {
		return envelope{}, fmt.Errorf("version %d, want %d: fit the model again", e.Version, envelopeVersion)
	}
	sum, err := checksum(e.Card, e.Data)
	if err != nil {
		return envelope{}, err
	}
	if sum != e.Sum {
		return envelope{}, fmt.Errorf("checksum %.16s... does not match %.16s...: the file was changed or damaged", sum, e.Sum)
	}
	return e, nil
}

func checksum(card perfmodel.Card, data []byte) (string, error) {
	b, err := json.Marshal(card)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	h.Write(b)
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil)), nil
}
