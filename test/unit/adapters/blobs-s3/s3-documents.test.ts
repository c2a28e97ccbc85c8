// The documents of S3: which responses are accepted, and what is read from them.
import { describe, expect, test } from 'bun:test'
import {
  checkCompletion,
  checkDocument,
  escapeXml,
  fieldOf,
  objectList,
  parsePage,
  uploadList,
} from '../../../../src/adapters/blobs-s3/s3-documents.ts'
import { errorCodeIn, S3Error } from '../../../../src/adapters/blobs-s3/s3-response.ts'

describe('a field', () => {
  test('is read as S3 writes it', () => {
    const text = '<Key>a&amp;b &lt;c&gt; &quot;d&quot; &apos;e&apos; &#252; &#x1F4E6;</Key><Key>2</Key><Empty></Empty>'
    expect(fieldOf(text, 'Key')).toBe('a&b <c> "d" \'e\' \u00fc \u{1f4e6}')
    expect(fieldOf(text, 'Empty')).toBe('')
    expect(fieldOf(text, 'None')).toBeUndefined()
  })

  test('that was escaped is read as it was, and none is read with other entities or elements', () => {
    const text = `"etag" <a> & 'b' ]]> &amp;`
    expect(fieldOf(`<a>${escapeXml(text)}</a>`, 'a')).toBe(text)
    for (const bad of ['&nbsp;', '&toString;', '&amp', 'a & b', '&#x110000;', '<b>x</b>', '<!-- -->']) {
      expect([bad, fieldOf(`<a>${bad}</a>`, 'a')]).toEqual([bad, undefined])
    }
  })
})

describe('a document', () => {
  test('may have a declaration, and space around it, or be empty', () => {
    const declared =
      '\ufeff <?xml version="1.0" encoding="UTF-8"?>\n<a xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><b/></a>\n\n'
    for (const text of ['<a>1</a>', declared, '<a/>', '<a xmlns="x" />']) checkDocument('X', text, 'a')
  })

  test.each([
    ['nothing', ''],
    ['only a declaration', '<?xml version="1.0"?>'],
    ['half a document', '<a><b>1</b>'],
    ['half a document that ends with an element', '<a><b/>'],
    ['half a tag', '<a><b'],
    ['text before', 'x<a></a>'],
    ['text behind', '<a></a>x'],
    ['a document type', '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'],
    ['a page', '<html><p>hello<br></p></html>'],
    ['another document', '<b></b>'],
    ['one whose name only begins in the same way', '<ab></ab>'],
    ['JSON', '{"a":1}'],
  ])('is not %s', (_, text) => {
    expect(() => checkDocument('X', text, 'a')).toThrow(S3Error)
  })
})

test('a page of objects has their names and ages, and leads to the next page', () => {
  const page = `<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>a&amp;</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>
<Owner><ID>x</ID></Owner></Contents><Contents><LastModified>2026-01-01T00:00:01.000Z</LastModified><Key>b</Key></Contents>
<NextContinuationToken>t/1</NextContinuationToken></ListBucketResult>`
  expect(parsePage(objectList, page, Date.UTC(2026, 0, 1, 0, 0, 1))).toEqual({
    entries: [
      { name: 'a&', ageMs: 1_000 },
      { name: 'b', ageMs: 0 },
    ],
    next: [['continuation-token', 't/1']],
  })
})

test('a page of uploads has their ids, and may be the last', () => {
  const page = `<ListMultipartUploadsResult><IsTruncated>false</IsTruncated><Upload><Key>a</Key><UploadId>1</UploadId>
<Initiated>2026-01-01T00:00:00.000Z</Initiated></Upload></ListMultipartUploadsResult>`
  expect(parsePage(uploadList, page, Date.UTC(2026, 0, 1, 0, 0, 1))).toEqual({
    entries: [{ name: 'a', uploadId: '1', ageMs: 1_000 }],
    next: undefined,
  })
  expect(() => parsePage(uploadList, page.replace('<UploadId>1</UploadId>', ''), 0)).toThrow('no UploadId')
  expect(() => parsePage(uploadList, page.replace('2026-', 'x'), 0)).toThrow('no valid time in Initiated')
  expect(() => parsePage(uploadList, page.replace('false', 'true'), 0)).toThrow('no NextKeyMarker')
})

test('a hostile document is rejected as fast as it is read', () => {
  const length = 200_000
  const hostile = ['<a '.repeat(length), `<a ${' '.repeat(length)}`, '<Contents>'.repeat(length), '<'.repeat(length)]
  // A test that takes more than linear time does not end within its limit.
  for (const text of hostile) {
    expect(() => parsePage(objectList, text, 0)).toThrow(S3Error)
    expect(() => parsePage(objectList, `<ListBucketResult>${text}</ListBucketResult>`, 0)).not.toThrow(RangeError)
  }
  expect(fieldOf(`<a>${'&'.repeat(length)}</a>`, 'a')).toBeUndefined()
  expect(errorCodeIn(`<Error>${'<Code>x'.repeat(length)}</Error>`)).toBeUndefined()
})

test('a completion with status 200 may be an error', () => {
  checkCompletion('<CompleteMultipartUploadResult><ETag>"x"</ETag></CompleteMultipartUploadResult>')
  expect(() => checkCompletion('<Error><Code>InternalError</Code></Error>')).toThrow('200 InternalError')
  expect(() => checkCompletion('')).toThrow('malformed')
})

describe('the code of an error', () => {
  test.each([
    ['<Error><Code>SlowDown</Code><Message>x</Message></Error>', 'SlowDown'],
    ['  \n\n<?xml version="1.0"?><Error><Code>InternalError</Code></Error>', 'InternalError'],
    ['<Error><Code>SlowDown</Code><Message>x</Mess', undefined],
    ['<CompleteMultipartUploadResult><Code>x</Code></CompleteMultipartUploadResult>', undefined],
    ['<Error><Message>x</Message></Error>', undefined],
    ['<Error><Code>two words</Code></Error>', undefined],
    [`<Error><Code>${'x'.repeat(65)}</Code></Error>`, undefined],
    ['<html>502</html>', undefined],
    ['', undefined],
  ])('%p', (text, code) => {
    expect(errorCodeIn(text)).toBe(code)
  })
})
