/** Where the page is mounted: `/`, or the path of `server.public_url`. The server writes it into `<base href>`. */
export const basePath = new URL(document.baseURI).pathname;
