package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"
)

// inspectTable verifies the checksums of a table file: its index and every block. It returns the newest
// transaction in the table.
func inspectTable(path string, id uint64, t badger.TableManifest) (newest uint64, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	if err := inspectTableEnd(data); err != nil {
		return 0, err
	}
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("a block of the table is damaged")
		}
	}()
	tab, err := table.OpenInMemoryTable(data, id, &table.Options{ReadOnly: true, Compression: t.Compression, BlockSize: blockSize})
	if err != nil {
		return 0, err
	}
	return tab.MaxVersion(), tab.VerifyChecksum()
}

// inspectTableEnd checks the lengths at the end of a table file, because the engine ends the program if they
// are wrong:
//
//	index, index length (4 bytes), checksum of the index, checksum length (4 bytes)
func inspectTableEnd(data []byte) error {
	_, rest, ok := splitTail(data)
	if !ok {
		return errors.New("the table has no checksum")
	}
	if index, _, ok := splitTail(rest); !ok || len(index) == 0 {
		return errors.New("the table has no index")
	}
	return nil
}

// splitTail splits off the tail of b; the last four bytes hold its length.
func splitTail(b []byte) (tail, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	b, n := b[:len(b)-4], uint64(binary.BigEndian.Uint32(b[len(b)-4:]))
	if n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[len(b)-int(n):], b[:len(b)-int(n)], true
}

// inspectKeys verifies the key registry of an unencrypted store: an initialization vector and a fixed text.
func inspectKeys(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(b) != 28 || !bytes.Equal(b[16:], []byte("Hello Badger")) {
		return errors.New("the key registry is not that of an unencrypted store")
	}
	return nil
}

// Head and entry flags of the engine's log files.
const (
	logHead  = 20   // key id, initialization vector
	logInTxn = 0x40 // not set in the last entry of a transaction
)

var logEndKey = []byte("!badger!txn")

// inspectLog reads a log file to the end of its data. After the end there may be the rest of one unacknowledged
// transaction, during which the writer was killed; anything else means that the middle is damaged. empty
// reports a log without data.
func inspectLog(path string, memtable bool) (w logWalk, empty bool, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return w, false, err
	}
	if len(data) < logHead || allZero(data[:logHead]) {
		if !allZero(data) {
			return w, false, errors.New("the head of the log is damaged")
		}
		return w, true, nil
	}
	if binary.BigEndian.Uint64(data) != 0 {
		return w, false, errors.New("the log is encrypted, or its head is damaged")
	}
	w = walkLog(data)
	w.torn = !allZero(data[w.whole:])
	return w, false, inspectLogRest(data, w, memtable)
}

func allZero(b []byte) bool { return leadingZeros(b) == len(b) }

var zeros [4096]byte

// leadingZeros counts the zeros at the start of b. Most of a log is zeros: they are compared a page at a time.
func leadingZeros(b []byte) (n int) {
	for len(b)-n >= len(zeros) && bytes.Equal(b[n:n+len(zeros)], zeros[:]) {
		n += len(zeros)
	}
	for n < len(b) && b[n] == 0 {
		n++
	}
	return n
}

// logWalk is the result of walkLog.
type logWalk struct {
	end   int    // offset of the first incomplete entry
	whole int    // offset after the last complete transaction
	cut   uint64 // transaction of the incomplete entry, 0 = unknown
	txns  span   // transactions up to end
	torn  bool   // there is data after whole
}

// walkLog reads the complete entries of a log. A log shorter than its head, as during its creation, has none.
func walkLog(data []byte) logWalk {
	if len(data) < logHead {
		return logWalk{}
	}
	w := logWalk{end: logHead, whole: logHead}
	for {
		e, ok := readEntry(data[w.end:])
		if !ok {
			return w
		}
		w.end += e.size
		if w.txns.first == 0 {
			w.txns.first = e.txn
		}
		w.txns.last = e.txn
		if w.cut = e.txn; e.flags&logInTxn == 0 { // the last entry of its transaction, or an entry without a transaction
			w.cut, w.whole = 0, w.end
		}
	}
}

// inspectLogRest looks for complete entries after the first damaged one. In the log of a memtable, a power
// failure may leave parts of the interrupted transaction, which is the one after the last that walkLog reached.
func inspectLogRest(data []byte, w logWalk, memtable bool) error {
	cut := w.cut
	for at := w.end + 1; at < len(data); {
		if at += leadingZeros(data[at:]); at == len(data) {
			return nil
		}
		e, ok, next := findEntry(data, at)
		if !ok {
			return nil
		}
		if cut == 0 {
			cut = e.txn
		}
		if e.txn != cut || !memtable {
			return fmt.Errorf("the log is damaged at byte %d: complete entries follow at byte %d", w.end, next-e.size)
		}
		at = next
	}
	return nil
}

// findEntry returns the first complete entry at or after offset at, and the offset after it.
func findEntry(data []byte, at int) (e logEntry, ok bool, next int) {
	at = max(at-2, 0) // flags and user meta may be zero
	for ; at < len(data); at++ {
		if e, ok := readEntry(data[at:]); ok {
			return e, true, at + e.size
		}
	}
	return logEntry{}, false, len(data)
}

// logEntry is an entry of a log file:
//
//	flags (1 byte), user meta (1), lengths of key and value and expiry
//	(varints), key with its transaction in the last 8 bytes, value, CRC-32C
type logEntry struct {
	flags byte
	txn   uint64
	size  int
}

// readEntry reads the entry at the start of b. ok is false if it is incomplete or its key does not belong to a
// store.
func readEntry(b []byte) (e logEntry, ok bool) {
	if len(b) < 5 {
		return e, false
	}
	e.flags = b[0]
	at := 2
	var nums [3]uint64 // key length, value length, expiry
	for i := range nums {
		v, n := binary.Uvarint(b[at:min(len(b), at+binary.MaxVarintLen64)])
		if n <= 0 {
			return e, false
		}
		nums[i], at = v, at+n
	}
	klen, vlen, expiry := nums[0], nums[1], nums[2]
	room := uint64(len(b) - at)
	if klen < 9 || klen > 1<<16 || vlen > room || klen+vlen+crc32.Size > room {
		return e, false
	}
	key := b[at : at+int(klen)]
	if !ourLogKey(key[:klen-8]) || expiry != 0 && key[0] != answeredPrefix {
		return e, false
	}
	at += int(klen + vlen)
	if crc32.Checksum(b[:at], castagnoli) != binary.BigEndian.Uint32(b[at:]) {
		return e, false
	}
	// The engine keeps the complement, so that newer versions sort first.
	e.txn = ^binary.BigEndian.Uint64(key[klen-8:])
	e.size = at + crc32.Size
	return e, true
}

func ourLogKey(k []byte) bool {
	return bytes.IndexByte(ourPrefixes, k[0]) >= 0 || string(k) == formatKey || bytes.Equal(k, logEndKey)
}
