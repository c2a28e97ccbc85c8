// The reader of S3's answers: what it takes, and what it does not.
import { describe, expect, test } from 'bun:test'
import { codeIn } from '../../../../src/adapters/blobs-s3/s3-fault.ts'
import { childrenOf, escapeXml, parseXml, textOf, XmlFault } from '../../../../src/adapters/blobs-s3/s3-xml.ts'

describe('a document', () => {
  test('is read as S3 writes it', () => {
    const document = parseXml(
      '\ufeff <?xml version="1.0" encoding="UTF-8"?>\n<!-- a > b -->\n' +
        '<List xmlns="http://s3.amazonaws.com/doc/2006-03-01/" xmlns:x=\'y>z\'>\n' +
        '  <Key>a&amp;b &lt;c&gt; &quot;d&quot; &apos;e&apos; &#252; &#x1F4E6;</Key>\n' +
        '  <Empty/><Empty a="b" />' +
        '<Item><Key>1</Key></Item><Item><Key><![CDATA[<2> & ]]]></Key></Item></List>\n\n',
    )
    expect(document.name).toBe('List')
    expect(textOf(document, 'Key')).toBe('a&b <c> "d" \'e\' \u00fc \u{1f4e6}')
    expect(childrenOf(document, 'Empty').map(({ text }) => text)).toEqual(['', ''])
    expect(childrenOf(document, 'Item').map((item) => textOf(item, 'Key'))).toEqual(['1', '<2> & ]'])
    expect(textOf(document, 'None')).toBeUndefined()
  })

  test('is written so that it is read as it was', () => {
    const text = `"etag" <a> & 'b' ]]> &amp;`
    expect(parseXml(`<a>${escapeXml(text)}</a>`).text).toBe(text)
  })

  test.each([
    ['nothing', ''],
    ['only a declaration', '<?xml version="1.0"?>'],
    ['half a document', '<a><b>1</b>'],
    ['half a tag', '<a><b'],
    ['half a comment', '<a><!-- </a>'],
    ['tags across each other', '<a><b></a></b>'],
    ['a tag that was not open', '</a>'],
    ['one too many', '<a></a></a>'],
    ['two documents', '<a/><b/>'],
    ['text before', 'x<a/>'],
    ['text behind', '<a/>x'],
    ['a document type', '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'],
    ['an entity that nobody knows', '<a>&nbsp;</a>'],
    ['an inherited name as an entity', '<a>&toString;</a>'],
    ['half an entity', '<a>&amp</a>'],
    ['a bare ampersand', '<a>a & b</a>'],
    ['a character that is none', '<a>&#x110000;</a>'],
    ['the character zero', '<a>&#0;</a>'],
    ['an attribute without quotes', '<a b=c/>'],
    ['a page', '<html><p>hello<br></p></html>'],
    ['JSON', '{"a":1}'],
    ['too many levels', `${'<a>'.repeat(40)}${'</a>'.repeat(40)}`],
  ])('is not %s', (_, text) => {
    expect(() => parseXml(text)).toThrow(XmlFault)
  })

  test('that is hostile is refused as fast as it is read', () => {
    const length = 200_000
    const hostile = [
      '<a '.repeat(length),
      `<a ${' '.repeat(length)}`,
      `<a ${'b="c" '.repeat(length)}`,
      `<a>${'&'.repeat(length)}</a>`,
      `<a>${'<!--'.repeat(length)}`,
      `<a>${'<![CDATA['.repeat(length)}`,
      `<a>${'</'.repeat(length)}`,
    ]
    // Anything that is not linear would not end within the test's time.
    for (const text of hostile) expect(() => parseXml(text)).toThrow(XmlFault)
  })
})

describe('the code of an error', () => {
  test.each([
    ['<Error><Code>SlowDown</Code><Message>x</Message></Error>', 'SlowDown'],
    ['  \n\n<?xml version="1.0"?><Error><Code>InternalError</Code></Error>', 'InternalError'],
    [
      '<ErrorResponse><Error><Type>Sender</Type><Code>ExpiredTokenException</Code></Error></ErrorResponse>',
      'ExpiredTokenException',
    ],
    ['<CompleteMultipartUploadResult><Code>x</Code></CompleteMultipartUploadResult>', undefined],
    ['<Error><Message>x</Message></Error>', undefined],
    ['<Error><Code>two words</Code></Error>', undefined],
    [`<Error><Code>${'x'.repeat(65)}</Code></Error>`, undefined],
    ['<html>502</html>', undefined],
    ['', undefined],
  ])('%p', (text, code) => {
    expect(codeIn(text)).toBe(code)
  })
})
