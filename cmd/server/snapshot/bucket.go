package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
)

// Bucket is an object store, or a shared directory, with the objects of one writer. Listings of it must have every
// object that was put before, as those of Amazon S3 do. It is safe for concurrent use.
type Bucket struct {
	objects *blob.Bucket
	dir     string // of a shared directory; "" = another kind
	name    string // for messages

	disturb func() error // of tests: called before and after each request; nil = nothing
}

// errExists means that there is an object of that name already; errMissing that there is none.
var (
	errExists  = errors.New("object exists")
	errMissing = errors.New("object missing")
)

// NewBucket returns a Bucket of objects, called name in messages. Objects that are created with IfNotExist must be
// created by one of several processes only.
func NewBucket(objects *blob.Bucket, name string) *Bucket {
	return &Bucket{objects: objects, name: name}
}

// OpenBucket opens file:///DIR, which is made, or s3://BUCKET/PREFIX. The query of an s3 URL has the parameters of
// s3blob.URLOpener: region, endpoint, use_path_style, profile and others. The caller calls Close.
func OpenBucket(ctx context.Context, text string) (*Bucket, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("snapshot: URL %q: want file:///DIR or s3://BUCKET/PREFIX: %w", text, err)
	}
	b := &Bucket{name: u.Scheme + "://" + u.Host + u.Path}
	switch {
	case u.Scheme == fileblob.Scheme && u.Host == "" && filepath.IsAbs(u.Path) && u.RawQuery == "":
		b.dir = filepath.Clean(u.Path)
		b.objects, err = fileblob.OpenBucket(b.dir, &fileblob.Options{CreateDir: true, DirFileMode: 0o700, Metadata: fileblob.MetadataDontWrite})
	case u.Scheme == s3blob.Scheme && u.Host != "":
		b.objects, err = new(s3blob.URLOpener).OpenBucketURL(ctx, u)
		if prefix := strings.Trim(u.Path, "/"); err == nil && prefix != "" {
			b.objects = blob.PrefixedBucket(b.objects, prefix+"/")
		}
	default:
		return nil, fmt.Errorf("snapshot: URL %q: want file:///DIR or s3://BUCKET/PREFIX", text)
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot: %s: %w", b.name, err)
	}
	return b, nil
}

// Close ends the use of b.
func (b *Bucket) Close() error { return b.objects.Close() }

// String returns the URL without its query.
func (b *Bucket) String() string { return b.name }

// do calls request, with what tests do around it.
func (b *Bucket) do(request func() error) error {
	if b.disturb == nil {
		return request()
	}
	if err := b.disturb(); err != nil {
		return err
	}
	if err := request(); err != nil {
		return err
	}
	return b.disturb()
}

// create puts an object that must not exist. The error wraps errExists if it does. After another error it may exist.
func (b *Bucket) create(ctx context.Context, name string, content []byte) error {
	err := b.do(func() error {
		if b.dir != "" {
			return b.createFile(name, content)
		}
		err := b.objects.Upload(ctx, name, bytes.NewReader(content), &blob.WriterOptions{IfNotExist: true, ContentType: "application/octet-stream"})
		if gcerrors.Code(err) == gcerrors.FailedPrecondition {
			return errExists
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("snapshot: put %s into %s: %w", name, b, err)
	}
	return nil
}

// createFile puts an object into a shared directory. fileblob does not: it looks for the file and then renames, so that
// two processes can both succeed, and does not wait for the disk.
func (b *Bucket) createFile(name string, content []byte) error {
	path := filepath.Join(b.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	err := atomicfile.WriteNew(path, 0o600, content)
	if errors.Is(err, fs.ErrExist) {
		return errExists
	}
	return err
}

// read returns the content of an object. The error wraps errMissing if there is none.
func (b *Bucket) read(ctx context.Context, name string) ([]byte, error) {
	var content []byte
	err := b.do(func() error {
		r, err := b.objects.NewReader(ctx, name, nil)
		if err != nil {
			return err
		}
		content, err = io.ReadAll(r)
		return errors.Join(err, r.Close())
	})
	if gcerrors.Code(err) == gcerrors.NotFound {
		err = errMissing
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot: read %s of %s: %w", name, b, err)
	}
	return content, nil
}

// listTimeout bounds a listing, so that a store that does not answer is noticed.
const listTimeout = 30 * time.Second

// object is an object of a listing.
type object struct {
	name string
	at   time.Time // when it was put, by the clock of the store
}

// list returns the objects with names that begin with prefix, in order of their names.
func (b *Bucket) list(ctx context.Context, prefix string) (out []object, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	err = b.do(func() error {
		for it := b.objects.List(&blob.ListOptions{Prefix: prefix}); ; {
			o, err := it.Next(ctx)
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return err
			case !o.IsDir:
				out = append(out, object{o.Key, o.ModTime})
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("snapshot: list %s of %s: %w", prefix, b, err)
	}
	return out, nil
}

// sweep removes what processes that were killed left in a shared directory.
func (b *Bucket) sweep() {
	if b.dir != "" {
		atomicfile.Sweep(filepath.Join(b.dir, filepath.FromSlash(snapshotDir)))
	}
}

// remove deletes an object. It is no error if there is none.
func (b *Bucket) remove(ctx context.Context, name string) error {
	err := b.objects.Delete(ctx, name)
	if err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return fmt.Errorf("snapshot: delete %s of %s: %w", name, b, err)
	}
	return nil
}
