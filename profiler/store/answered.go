package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// answeredAge is how long answers are kept.
const answeredAge = 24 * time.Hour

// Answered is the answer to a call with an idempotency key, kept for 24 hours.
type Answered struct {
	Body   [sha256.Size]byte `json:"body"` // hash of the request
	Counts Counts            `json:"counts"`
}

func answeredKey(client, key string) []byte {
	sum := sha256.Sum256([]byte(client + "\x00" + key))
	return append([]byte{answeredPrefix}, sum[:16]...)
}

// Answered returns the answer that PutOnce kept for a client's key; ok is false if there is none, or no longer.
func (db *DB) Answered(client, key string) (a Answered, ok bool, err error) {
	err = db.view(func(txn *badger.Txn) error {
		ok, err = readJSON(txn, answeredKey(client, key), &a)
		return err
	})
	return a, ok, err
}

// PutOnce is PutAll, and keeps its result under a client's key for 24 hours: in the transaction of the last rows, so that
// an answer is kept only if all rows are stored. body is the hash of the request.
func (db *DB) PutOnce(ctx context.Context, client, key string, body [sha256.Size]byte, ms ...spec.Measurement) (Counts, error) {
	return db.putAll(ctx, ms, func(txn *badger.Txn, c Counts) error {
		value, err := json.Marshal(Answered{body, c})
		if err != nil {
			return err
		}
		return txn.SetEntry(badger.NewEntry(answeredKey(client, key), value).WithTTL(answeredAge))
	})
}
