import type { Sentiment } from './replies.js';

/** An opening remark, an opinion and a closing remark, in any combination. */
type Voice = { openings: string[]; opinions: string[]; endings: string[] };
type Voices = Record<Sentiment, Voice>;

const ENGLISH: Voices = {
  positive: {
    openings: [
      'I have used {brand} for about a year.',
      'A friend pointed me to {brand}.',
      'I only know {brand} from the shop.',
      'My sister swears by {brand}.',
      'First time I looked at {brand} closely.',
      'I buy from {brand} now and then.',
      'I compared {brand} with two others.',
      'Quick first impression of {brand}.',
    ],
    opinions: [
      'I really like {topic}.',
      '{Topic}: good, better than I expected.',
      'With {topic} they got it right, it feels well made.',
      'I am happy with {topic} and would recommend it.',
      '{Topic} looks great and is easy to get on with.',
      'I enjoy {topic}, it is a nice change.',
      'For me {topic} is a clear win.',
    ],
    endings: [
      'I would buy again.',
      'Keep it that way.',
      'Good value for the money.',
      'My partner liked it too.',
      'The friendly service helps.',
      'It made me smile.',
      'No complaints so far.',
    ],
  },
  neutral: {
    openings: [
      'I know {brand} only by name.',
      'I see {brand} around, no more than that.',
      'Not a customer of {brand} at the moment.',
      '{brand} is one of several for me.',
      'I had to look {brand} up.',
      'I have no history with {brand}.',
      'I walk past {brand} most days.',
      'Someone at work mentioned {brand} once.',
    ],
    opinions: [
      '{Topic}: neither here nor there for me.',
      'I have no strong view on {topic}.',
      'About {topic}: it does what it says.',
      'I would need to see more of {topic} first.',
      '{Topic} is much like anywhere else.',
      'It depends on the price of {topic}.',
      'For {topic} I would have to ask around.',
    ],
    endings: [
      'Ask me again in a month.',
      'I might have a look.',
      'Could go either way.',
      'That is all I can say.',
      'Other things matter more to me.',
      'I am on the fence.',
      'It is a matter of taste.',
    ],
  },
  negative: {
    openings: [
      'I stopped going to {brand} last spring.',
      'I wanted to like {brand}.',
      'To be honest about {brand}:',
      'I tried {brand} twice.',
      '{brand} used to be my usual place.',
      'I gave {brand} a chance.',
      'My experience with {brand} was short.',
      'I looked at what {brand} offers.',
    ],
    opinions: [
      '{Topic} disappointed me.',
      'I do not like {topic}.',
      'I find {topic} annoying and too expensive.',
      '{Topic} looks cheap to me.',
      'They made {topic} worse.',
      'I had problems with {topic}.',
      '{Topic}: confusing, I gave up.',
    ],
    endings: [
      'I would not pay for it.',
      'Others do it better.',
      'Please fix that.',
      'It was a bad surprise.',
      'I went elsewhere.',
      'It is a pity.',
      'I will not come back soon.',
    ],
  },
};

const GERMAN: Voices = {
  positive: {
    openings: [
      'Ich kenne {brand} seit Jahren.',
      'Eine Freundin hat mir {brand} empfohlen.',
      'Ich kaufe ab und zu bei {brand}.',
      'Erster Eindruck von {brand}:',
      'Ich habe {brand} mit zwei anderen verglichen.',
    ],
    opinions: [
      'Das gefällt mir richtig gut.',
      'Besser, als ich erwartet hatte.',
      'Ich bin zufrieden und würde es empfehlen.',
      'Das ist gut gemacht.',
      'Für mich eine klare Verbesserung.',
      'Das macht mir Freude.',
    ],
    endings: ['Gerne wieder.', 'Bitte so lassen.', 'Der Preis stimmt auch.'],
  },
  neutral: {
    openings: [
      'Ich kenne {brand} nur dem Namen nach.',
      'Zurzeit bin ich kein Kunde von {brand}.',
      '{brand} ist für mich eine Marke unter vielen.',
      'Ich musste {brand} erst nachschlagen.',
      'Von {brand} habe ich neulich gehört.',
    ],
    opinions: [
      'Dazu habe ich keine feste Meinung.',
      'Weder gut noch schlecht.',
      'Es erfüllt seinen Zweck.',
      'Das haben andere auch.',
      'Es kommt auf den Preis an.',
      'Ich müsste erst mehr davon sehen.',
    ],
    endings: [
      'Fragen Sie mich in einem Monat noch einmal.',
      'Vielleicht sehe ich es mir an.',
      'Das ist Geschmackssache.',
    ],
  },
  negative: {
    openings: [
      'Ich habe {brand} zweimal ausprobiert.',
      'Ehrlich gesagt, zu {brand}:',
      'Früher mochte ich {brand}.',
      'Ich wollte {brand} eine Chance geben.',
      'Meine Erfahrung mit {brand} war kurz.',
    ],
    opinions: [
      'Das hat mich enttäuscht.',
      'Das gefällt mir nicht.',
      'Das ist mir zu teuer.',
      'Es wirkt billig.',
      'Vorher war es besser.',
      'Damit hatte ich Probleme.',
    ],
    endings: ['Dafür würde ich nichts zahlen.', 'Andere können das besser.', 'Schade.'],
  },
};

const SPANISH: Voices = {
  positive: {
    openings: [
      'Conozco {brand} desde hace años.',
      'Una amiga me recomendó {brand}.',
      'Compro en {brand} de vez en cuando.',
      'Mi primera impresión de {brand}:',
      'Comparé {brand} con otras dos marcas.',
    ],
    opinions: [
      'Me gusta mucho.',
      'Es mejor de lo que esperaba.',
      'Estoy contento y lo recomendaría.',
      'Está bien hecho.',
      'Para mí es una clara mejora.',
      'Me alegra el día.',
    ],
    endings: ['Volvería a comprar.', 'Que siga así.', 'El precio también es bueno.'],
  },
  neutral: {
    openings: [
      'Solo conozco {brand} de nombre.',
      'Ahora mismo no soy cliente de {brand}.',
      'Para mí {brand} es una marca más.',
      'Tuve que buscar qué es {brand}.',
      'Hace poco oí hablar de {brand}.',
    ],
    opinions: [
      'No tengo una opinión clara.',
      'Ni bien ni mal.',
      'Cumple su función.',
      'Otros ofrecen lo mismo.',
      'Depende del precio.',
      'Tendría que verlo mejor.',
    ],
    endings: ['Pregúnteme dentro de un mes.', 'Quizá le eche un vistazo.', 'Es cuestión de gustos.'],
  },
  negative: {
    openings: [
      'Probé {brand} dos veces.',
      'Sinceramente, sobre {brand}:',
      'Antes me gustaba {brand}.',
      'Quise darle una oportunidad a {brand}.',
      'Mi experiencia con {brand} fue corta.',
    ],
    opinions: [
      'Me decepcionó.',
      'No me gusta.',
      'Me parece demasiado caro.',
      'Parece de mala calidad.',
      'Antes era mejor.',
      'Tuve problemas con eso.',
    ],
    endings: ['No pagaría por ello.', 'Otros lo hacen mejor.', 'Es una pena.'],
  },
};

const FRENCH: Voices = {
  positive: {
    openings: [
      'Je connais {brand} depuis des années.',
      'Une amie m’a conseillé {brand}.',
      'J’achète parfois chez {brand}.',
      'Première impression de {brand} :',
      'J’ai comparé {brand} à deux autres marques.',
    ],
    opinions: [
      'Cela me plaît beaucoup.',
      'C’est mieux que ce que j’attendais.',
      'J’en suis content et je le recommanderais.',
      'C’est bien fait.',
      'Pour moi, c’est un vrai progrès.',
      'C’est un plaisir.',
    ],
    endings: ['J’y retournerai.', 'Continuez ainsi.', 'Le prix est correct aussi.'],
  },
  neutral: {
    openings: [
      'Je ne connais {brand} que de nom.',
      'Je ne suis pas client de {brand} en ce moment.',
      'Pour moi, {brand} est une marque parmi d’autres.',
      'J’ai dû chercher ce qu’est {brand}.',
      'J’ai entendu parler de {brand} récemment.',
    ],
    opinions: [
      'Je n’ai pas d’avis tranché.',
      'Ni bien ni mal.',
      'Cela remplit sa fonction.',
      'Les autres proposent la même chose.',
      'Cela dépend du prix.',
      'Il faudrait que je voie mieux.',
    ],
    endings: [
      'Reposez-moi la question dans un mois.',
      'J’irai peut-être voir.',
      'C’est une question de goût.',
    ],
  },
  negative: {
    openings: [
      'J’ai essayé {brand} deux fois.',
      'Franchement, à propos de {brand} :',
      'Avant, j’aimais bien {brand}.',
      'J’ai voulu donner une chance à {brand}.',
      'Mon expérience avec {brand} a été courte.',
    ],
    opinions: [
      'J’ai été déçu.',
      'Cela ne me plaît pas.',
      'Je trouve cela trop cher.',
      'Cela fait bas de gamme.',
      'C’était mieux avant.',
      'J’ai eu des problèmes avec cela.',
    ],
    endings: ['Je ne paierais pas pour cela.', 'D’autres font mieux.', 'C’est dommage.'],
  },
};

const PORTUGUESE: Voices = {
  positive: {
    openings: [
      'Conheço a {brand} há anos.',
      'Uma amiga recomendou a {brand}.',
      'Compro na {brand} de vez em quando.',
      'Minha primeira impressão da {brand}:',
      'Comparei a {brand} com outras duas.',
    ],
    opinions: [
      'Gosto muito.',
      'É melhor do que eu esperava.',
      'Estou satisfeito e recomendaria.',
      'É bem feito.',
      'Para mim é uma clara melhoria.',
      'É uma alegria.',
    ],
    endings: ['Compraria de novo.', 'Continuem assim.', 'O preço também é bom.'],
  },
  neutral: {
    openings: [
      'Só conheço a {brand} de nome.',
      'No momento não sou cliente da {brand}.',
      'Para mim a {brand} é uma marca como outras.',
      'Tive que procurar o que é a {brand}.',
      'Ouvi falar da {brand} há pouco tempo.',
    ],
    opinions: [
      'Não tenho uma opinião firme.',
      'Nem bom nem ruim.',
      'Cumpre a sua função.',
      'Outros oferecem o mesmo.',
      'Depende do preço.',
      'Precisaria ver melhor.',
    ],
    endings: ['Pergunte de novo daqui a um mês.', 'Talvez eu dê uma olhada.', 'É questão de gosto.'],
  },
  negative: {
    openings: [
      'Experimentei a {brand} duas vezes.',
      'Sinceramente, sobre a {brand}:',
      'Antes eu gostava da {brand}.',
      'Quis dar uma chance à {brand}.',
      'Minha experiência com a {brand} foi curta.',
    ],
    opinions: [
      'Fiquei decepcionado.',
      'Não gosto disso.',
      'Acho caro demais.',
      'Parece de má qualidade.',
      'Antes era melhor.',
      'Tive problemas com isso.',
    ],
    endings: ['Não pagaria por isso.', 'Outros fazem melhor.', 'É uma pena.'],
  },
};

/** By language (ISO 639-1). `{topic}` and `{Topic}` are replaced by the topic of the question; only English replies use them. */
export const VOICES: Readonly<Record<string, Voices>> = {
  en: ENGLISH,
  de: GERMAN,
  es: SPANISH,
  fr: FRENCH,
  pt: PORTUGUESE,
};
